"""Files: written atomically, read with suspicion, and fingerprints of data."""

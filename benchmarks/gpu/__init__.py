"""Embeddings on a GPU: how long a certified fit takes, and what else one would do on that card."""

"""Models exchanged while frames flow: versions, loading in the background, trial runs, and the way back."""

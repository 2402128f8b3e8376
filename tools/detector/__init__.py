"""The demo detector: a small anchor-free network, its loss, training pictures, export and evaluation."""

"""Durable delivery: an outbox on disk between the pipeline and a broker."""

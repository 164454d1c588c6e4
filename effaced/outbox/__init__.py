"""Durable external calls: enqueue with the local change, claim, requeue, count."""

"""Driving the saga with RQ: the bell, the drain job, the worker process, the scheduler."""

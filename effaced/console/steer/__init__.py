"""The page that asks before a breaker or a system is steered."""

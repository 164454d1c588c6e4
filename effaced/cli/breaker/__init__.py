"""`effaced breaker ...`"""

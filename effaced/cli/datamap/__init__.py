"""`effaced datamap ...`"""

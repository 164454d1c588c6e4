"""The page of one external call that is done by hand."""

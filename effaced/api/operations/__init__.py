"""What all operations of the API have in common, from the caller's key to the stored answer."""

"""The API's description in OpenAPI 3.1, made from its operations."""

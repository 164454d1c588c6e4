"""The pages of bulk retries."""

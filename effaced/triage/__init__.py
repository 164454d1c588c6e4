"""What people do about failures: retry, redrive a set, attest, pause a resolver, confirm a person."""

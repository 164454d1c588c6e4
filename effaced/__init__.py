"""GDPR erasure orchestration."""

"""What users write, as typed models: parsed, not yet resolved."""

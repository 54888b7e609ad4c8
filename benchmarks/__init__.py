"""What the README's performance table is made with: ``python -m benchmarks``."""

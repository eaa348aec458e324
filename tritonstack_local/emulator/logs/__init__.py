"""CloudWatch Logs: filter patterns and their metrics, and queries of Logs Insights."""

"""Model folders → recipe → export → proof → lint → pack → publish."""

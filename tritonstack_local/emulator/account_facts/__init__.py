"""What an account is offered and allowed, as preflight asks: quotas, images, types, prices, keys. All constructed."""

"""Release records: what each model's archive is and was, who moved it, and how it is moved back."""

"""Who gets which access by a change: permissions of principals, resource policies, what is opened to the outside."""

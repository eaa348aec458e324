"""Access that a change gives or takes: permissions of principals, resource policies, what is opened to the outside."""

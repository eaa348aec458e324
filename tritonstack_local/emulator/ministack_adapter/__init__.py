"""Every name of MiniStack that the emulator uses: the one place to look at before MiniStack is upgraded.

MiniStack documents its HTTP routes and environment variables, and no Python interface: all its names are private, also
those without an underscore. So no other module of ``tritonstack_local`` imports it. A file here is the table of one of
its modules (``iam.py``: ``ministack.services.iam``), because one file would have more than 500 lines; ``core.py`` is of
``ministack.core``, ``application.py`` of ``ministack.app``. Each declaration has the module, the name there, and what
the emulator relies on:

===============  ==================================================================================================
``Function``     called, with these parameters and no others
``Replaceable``  replaced by the emulator, in every module that imported it; these are all its parameters
``Value``        read or changed: a table, an exception, a pattern; with its type and the keys that are looked up
``Class``        instantiated, or its methods used
===============  ==================================================================================================

``python -m tritonstack_local.emulator.ministack_adapter.check`` in ``.envs/emulator`` prints each declaration that the
installed MiniStack breaks. What the rows of a table hold it cannot see; the tests of the emulator do.
"""

SEEN_IN = "1.5.33"
"""The version of MiniStack that the declarations were compared with; ``requirements/emulator.in`` pins it."""

"""``ministack.services.codebuild``: projects, and the store that lists builds."""

from __future__ import annotations

from ministack.services import codebuild

from tritonstack_local.emulator.ministack_adapter.private_names import Function, Replaceable, Value

projects = Value(codebuild, "_projects", "AccountRegionScopedDict")
project_arn = Function(codebuild, "_project_arn", "name")
project_shape = Replaceable(codebuild, "_project_shape", "project")
create_project = Replaceable(codebuild, "_create_project", "data")
update_project = Replaceable(codebuild, "_update_project", "data")
builds = Value(codebuild, "_builds", "AccountRegionScopedDict")
start_build = Replaceable(codebuild, "_start_build", "data")
stop_build = Replaceable(codebuild, "_stop_build", "data")

"""CodeBuild that runs its builds: the buildspec's commands as processes of this machine.

Projects and the listing of builds are MiniStack's; StartBuild, StopBuild and the run of a build are here. There is no
container, no image and no GPU: the first lines of every build's log name the stand-ins.
"""

"""The room of the command ``polyweave-torch verdict``: from files of scores or checks to a release verdict."""

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs both commands of the README in a fresh clone, where much is unusual: the path has a space and
# a letter outside of ASCII, HOME is not set, no other user may read new files, and the user is an
# ordinary one, also when root starts it. Arguments are pytest's.
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
chmod 755 "$place"
folder="$place/my progräms"
mkdir "$folder"
git clone -q . "$folder/cuplug"
as_user=
if [ "$(id -u)" = 0 ]; then
  chown -R nobody: "$folder"
  as_user="setpriv --reuid=nobody --regid=$(id -g nobody) --clear-groups"
  PATH=$(echo "$PATH" | tr : '\n' | grep -v '^/root' | paste -sd :) # which others cannot read
fi
cd "$folder/cuplug"
umask 077
export PATH CUDA_ARCHS= PYTEST="-p no:cacheprovider $*"
for command in demo test; do
  $as_user env -u HOME -u MAKEFLAGS -u MAKELEVEL make "$command"
done

# What a remote host runs before the agent, as `sh -c` with two arguments: the SHA-256 and the size of the program.
#
# POSIX sh. It reaches the host as one line between single quotes, through whatever login shell the user has, so it holds
# no single quote, no backslash and no exclamation mark, and every command ends in its own semicolon.
#
# A sonde with this SHA-256 is used where it is found; else a copy comes by standard input. The copy has no name by the
# time its first byte comes: the file is opened and removed at once, and started through its descriptor, so whatever ends
# this shell leaves nothing behind. Where programs may run is tried by running one: a mount with noexec refuses.
about="$(uname -s) $(uname -m) ${SSH_CONNECTION:-- - - -}";
found=;
for program in "$(command -v sonde 2>/dev/null)" "$HOME/.local/bin/sonde" "$HOME/.cargo/bin/sonde"; do
  if [ -z "$found" ] && [ -f "$program" ] && [ -x "$program" ]; then
    if [ "$(sha256sum <"$program" 2>/dev/null | cut -c 1-64)" = "$1" ]; then found=$program; fi;
  fi;
done;
echo;
if [ -n "$found" ]; then
  echo "sonde-host/1 have $about";
  exec "$found" agent;
fi;
umask 077;
place=;
for folder in "$XDG_RUNTIME_DIR" /dev/shm /tmp "$HOME"; do
  if [ -z "$place" ] && [ -d "$folder" ] && [ -w "$folder" ]; then
    room=$(df -Pk "$folder" 2>/dev/null | tail -n 1 | tr -s " " | cut -d " " -f 4);
    if [ "${room:-0}" -gt $(($2 / 1024 + 1)) ] 2>/dev/null && file=$(mktemp "$folder/.sonde.XXXXXX" 2>/dev/null); then
      echo "exit 0; : sonde-host/1" >"$file";
      chmod 700 "$file";
      if "$file" 2>/dev/null; then exec 3<>"$file"; place=$folder; fi;
      rm -f "$file";
    fi;
  fi;
done;
if [ -z "$place" ]; then
  echo "sonde-host/1 nowhere $about";
  exit 1;
fi;
echo "sonde-host/1 want $about";
head -c "$2" >&3;
exec 4</proc/self/fd/3;
exec 3>&-;
if [ "$(wc -c <&4)" -ne "$2" ]; then
  echo "only $(wc -c <&4) of $2 bytes of the program came, by way of $place" >&2;
  exit 1;
fi;
exec /proc/self/fd/4 agent;

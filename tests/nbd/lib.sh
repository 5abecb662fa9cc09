# What the scripts here have in common: a server for the time of a test, and words. Sourced, not run.

binary=${BINARY:?the nandscape command}
# As reached from the scratch directory that the scripts work in.
binary=$(realpath "$binary")
work=$(mktemp -d)
server=

# A small device with pages of 4 KiB; two namespaces.
device=(--set device.channels=2 --set device.dies_per_channel=2 --set device.planes_per_die=1
    --set device.blocks_per_plane=128 --set device.pages_per_block=64 --set device.page=4KiB
    --set device.sector=4KiB --set namespaces.count=2)

# Starts `serve nbd` with these arguments and waits until it says where.
start() {
    : > "$work/out"
    "$binary" serve nbd "${device[@]}" "$@" > "$work/out" 2> "$work/err" &
    server=$!
    local tries=0
    until grep -q '^listening on' "$work/out"; do
        tries=$((tries + 1))
        if [ "$tries" -gt 600 ] || ! kill -0 "$server" 2>/dev/null; then
            fail "the server does not start: $(cat "$work/err")"
        fi
        sleep 0.05
    done
}

# Ends the server in good order.
stop() {
    kill "$server"
    wait "$server" || fail "the server ended with $?: $(cat "$work/err")"
    server=
}

# The address of an export of the running server.
uri() { sed -n "s/^listening on //p" "$work/out" | grep "/$1\(?\|\$\)" | head -n 1; }

ok() { echo "ok: $1"; }

fail() {
    echo "FAILED: $1" >&2
    exit 1
}

skip() { echo "SKIP: $1"; }

has() { command -v "$1" >/dev/null 2>&1; }

clean() {
    if [ -n "$server" ]; then kill -KILL "$server" 2>/dev/null || true; fi
    rm -rf "$work"
}
trap clean EXIT

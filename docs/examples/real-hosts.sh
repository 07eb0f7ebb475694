#!/usr/bin/env bash
# Two real hosts, network namespaces with a stack of their own, over two emulated switches and their controller.
# Run it as root, from the checkout; it needs iproute2 and ethtool. With a command, it runs that in host h0:
#
#     sudo docs/examples/real-hosts.sh ping -c 3 10.0.1.1
set -euo pipefail

# All of it is inside namespaces of its own: nothing stays behind, however it ends.
if [[ "${INSIDE:-}" != yes ]]; then
    INSIDE=yes exec unshare --net --mount --pid --fork --kill-child --mount-proc "$0" "$@"
fi
bin="$PWD/.venv/bin"
mkdir -p /run/netns
mount -t tmpfs none /run/netns
mount --bind /dev/null /etc/resolv.conf # no name server is reached from here, so no name waits for one
ip link set lo up

# Hosts, addresses and MACs are those of the fabric.
fabric=docs/examples/real-hosts-fabric.yaml
list='import json, sys
for host in json.load(sys.stdin)["hosts"]: print(host["name"], host["nics"][0]["address"], host["nics"][0]["mac"])'
mapfile -t hosts < <("$bin/trainyard" topology "$fabric" -o json | "$bin/python" -c "$list")
wires=()
for number in "${!hosts[@]}"; do
    read -r host address mac <<<"${hosts[number]}"
    wires+=(--wire "$host.0=f$number")
    ip netns add "$host"
    ip link add "f$number" type veth peer name eth0 netns "$host"
    ip netns exec "$host" ethtool --offload eth0 tx off gso off tso off gro off >/dev/null
    ip netns exec "$host" sh -c 'echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6'
    ip -n "$host" link set lo up
    ip -n "$host" link set eth0 address "$mac" up
    ip -n "$host" address add "$address/32" dev eth0
    # Switches answer no ARP: one permanent neighbour, whose address no host has, stands for the fabric.
    ip -n "$host" neighbour add 169.254.1.1 lladdr 06:00:00:00:00:01 dev eth0 nud permanent
    ip -n "$host" route add default via 169.254.1.1 dev eth0 onlink
done

"$bin/trainyard" emulator --topology "$fabric" "${wires[@]}" &
"$bin/trainyard" controller --config docs/examples/real-hosts-controller.yaml &

read -r _ server _ <<<"${hosts[1]}"
# A page that h1 serves can be fetched as soon as the controller has written base routing.
ip netns exec h1 "$bin/python" -m http.server 8000 --bind "$server" --directory docs/examples >/dev/null 2>&1 &
fetch='import sys, urllib.request; sys.stdout.buffer.write(urllib.request.urlopen(sys.argv[1], timeout=2).read())'
until ip netns exec h0 "$bin/python" -c "$fetch" "http://$server:8000/fabric.yaml" >/dev/null 2>&1; do
    sleep 1
done
echo "h0 has fetched a page from h1 through the switches"
if (($#)); then
    ip netns exec h0 "$@"
fi

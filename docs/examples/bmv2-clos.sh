#!/bin/sh
# Builds the fabric of bmv2-controller.yaml on one machine: two ToRs and two aggregation switches, each a BMv2, and a
# host under each ToR. Run it as root, with iproute2 and simple_switch_grpc installed:
#
#     sh bmv2-clos.sh up      connects the cables and starts the switches
#     sh bmv2-clos.sh down    stops the switches and removes everything
#
# Switches and controller run in the network namespace fabric, hosts in h0 and h1. Hosts reach the controller through a
# management network: at 172.31.0.1 and 172.31.1.1.
set -eu

SWITCHES=/run/trainyard-bmv2

cable() { # namespace and interface of each end
    ip link add name "$2" netns "$1" type veth peer name "$4" netns "$3"
    ip -n "$1" link set "$2" up
    ip -n "$3" link set "$4" up
}

switch() { # name, number of ports, P4Runtime port
    interfaces=
    for port in $(seq "$2"); do interfaces="$interfaces -i $port@$1-$port"; done
    # shellcheck disable=SC2086
    ip netns exec fabric simple_switch_grpc --no-p4 --device-id 1 --log-level off $interfaces -- \
        --grpc-server-addr "127.0.0.1:$3" --cpu-port 510 --priority-queues 8 >"$SWITCHES/$1.log" 2>&1 &
    echo $! >"$SWITCHES/$1.pid"
}

up() {
    mkdir -p "$SWITCHES"
    for namespace in fabric h0 h1; do
        ip netns add "$namespace"
        ip -n "$namespace" link set lo up
    done
    cable h0 nic0 fabric t0-1
    cable h1 nic0 fabric t1-1
    cable fabric t0-2 fabric a0-1
    cable fabric t0-3 fabric a1-1
    cable fabric t1-2 fabric a0-2
    cable fabric t1-3 fabric a1-2
    for host in 0 1; do
        other=$((1 - host))
        cable fabric "manage-h$host" "h$host" manage
        ip -n fabric address add "172.31.$host.1/30" dev "manage-h$host"
        ip -n "h$host" address add "172.31.$host.2/30" dev manage
        # Nothing answers ARP in the fabric, so neighbours are permanent.
        ip -n "h$host" address add "10.0.$host.1/8" dev nic0
        ip -n "h$host" neighbour add "10.0.$other.1" lladdr "02:00:00:00:0$other:01" dev nic0 nud permanent
    done
    switch t0 3 9559
    switch t1 3 9560
    switch a0 2 9561
    switch a1 2 9562
}

down() {
    for pid in "$SWITCHES"/*.pid; do
        [ -e "$pid" ] || continue
        kill "$(cat "$pid")" 2>/dev/null || true
    done
    rm -rf "$SWITCHES"
    for namespace in fabric h0 h1; do
        ip netns delete "$namespace" 2>/dev/null || true
    done
}

case "${1-}" in
up | down) "$1" ;;
*)
    echo "usage: sh $0 up|down" >&2
    exit 2
    ;;
esac

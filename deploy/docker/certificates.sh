#!/bin/sh
# Makes an authority in /credentials, and hands each service of docker-compose.yml what it needs: its own certificate and
# key, and the authority's certificate.
set -eu
trainyard certificates /credentials --address controller --switch emulator \
    --operator operator --viewer prometheus --job demo

hand() {
    install -m 0644 /credentials/ca.pem "/credentials/$2.pem" "/for/$1"
    install -m 0600 "/credentials/$2.key" "/for/$1"
}

hand controller controller
hand emulator switch-emulator
hand job job-demo
hand operator operator-operator
hand prometheus viewer-prometheus

// Registers of numbers and pairs, with actions that saturate, compare and exchange; counters beside them.

#include "common.p4"

header numbers_t {
    bit<8>  index;
    bit<32> amount;
    bit<32> before;
    bit<32> other;
}

struct headers_t {
    ethernet_t ethernet;
    numbers_t  numbers;
}

struct metadata_t {}

struct pair_t {
    bit<32> low;
    bit<32> high;
}

parser IngressParser(packet_in packet, out headers_t hdr, out metadata_t meta, out ingress_intrinsic_metadata_t intrinsic) {
    state start {
        packet.extract(intrinsic);
        packet.advance(PORT_METADATA_SIZE);
        packet.extract(hdr.ethernet);
        packet.extract(hdr.numbers);
        transition accept;
    }
}

control Ingress(INGRESS_PARAMETERS) {
    Register<bit<32>, bit<8>>(256, 0xFFFFFFF0) totals;
    Register<pair_t, bit<8>>(256, { 7, 9 }) pairs;
    Counter<bit<64>, bit<8>>(256, CounterType_t.PACKETS_AND_BYTES) packets;

    RegisterAction<bit<32>, bit<8>, bit<32>>(totals) add_to_total = {
        void apply(inout bit<32> value, out bit<32> before) {
            before = value;
            value = value |+| hdr.numbers.amount;
        }
    };

    RegisterAction<pair_t, bit<8>, bit<32>>(pairs) exchange = {
        void apply(inout pair_t value, out bit<32> other) {
            if (hdr.numbers.amount == 5) {
                other = value.high;
                value.high = value.low;
                value.low = hdr.numbers.amount;
            } else {
                other = value.low;
                value.high = hdr.numbers.amount;
            }
        }
    };

    action count() {
        packets.count(hdr.numbers.index, 4);
        hdr.numbers.before = add_to_total.execute(hdr.numbers.index);
    }

    action exchange_pair() {
        hdr.numbers.other = exchange.execute(hdr.numbers.index);
    }

    apply {
        for_traffic_manager.ucast_egress_port = intrinsic.ingress_port;
        count();
        exchange_pair();
    }
}

control IngressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
                        in ingress_intrinsic_metadata_for_deparser_t for_deparser) {
    apply {
        packet.emit(hdr);
    }
}

SWITCH(IngressParser, Ingress, IngressDeparser)

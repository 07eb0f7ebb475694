// P4Runtime ids: part of the contract with controllers. An id is never reused for something else.
// Next free: table 0x02000006, action 0x01000008, profile 0x11000002, direct counter 0x13000002, counter 0x12000002.

#ifndef TRAINYARD_IDS_P4
#define TRAINYARD_IDS_P4

#define ID_TABLE_NODE                    0x02000001
#define ID_TABLE_FLOW                    0x02000002
#define ID_TABLE_LEVEL                   0x02000003
#define ID_TABLE_ROUTING                 0x02000004
#define ID_TABLE_NEXT_HOP                0x02000005

#define ID_ACTION_SET_NODE               0x01000001
#define ID_ACTION_STEER                  0x01000002
#define ID_ACTION_PRIORITISE             0x01000003
#define ID_ACTION_STEER_AND_PRIORITISE   0x01000004
#define ID_ACTION_SET_LEVEL              0x01000005
#define ID_ACTION_SET_NEXT_HOP           0x01000006
#define ID_ACTION_FORWARD                0x01000007

#define ID_PROFILE_ECMP                  0x11000001
#define ID_COUNTER_LEVEL                 0x12000001
#define ID_DIRECT_COUNTER_FLOW           0x13000001

#endif

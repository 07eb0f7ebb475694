"""EchelonFlow (Pan et al., HotNets 2022): flow groups whose flows finish in an arrangement."""

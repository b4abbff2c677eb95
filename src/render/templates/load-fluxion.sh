#!/bin/bash
# Replaces the simple scheduler by Fluxion; run it in a shell from flux-connect.sh on the leader.
flux module remove sched-simple
flux module load sched-fluxion-resource
flux module load sched-fluxion-qmanager

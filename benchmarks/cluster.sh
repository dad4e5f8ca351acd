#!/usr/bin/env bash
# Both recipes on hosts reached by SSH, then on a Slurm cluster: the scores must equal a local run's to the bit.
#
#   apt-get install slurm-wlm munge openssh-server iproute2
#   pip install '.[dask,demo]' dask-jobqueue paramiko
#   benchmarks/cluster.sh FOLDER [SPEAKERS]
#
# Runs as root on one machine, where network namespaces are the hosts head, node1 and node2, each with an address and
# daemons of its own. Slurm cancels a job during each recipe, and ends the others after a minute. SPEAKERS (default: 36)
# is the size of the simulated RSR2015; FOLDER, which must not exist, keeps corpora, logs and results.
set -euo pipefail

cd "$(dirname "$0")/.."
bin=$PWD/.venv/bin
mkdir "$1"
folder=$(realpath "$1")
export SLURM_CONF=$folder/slurm.conf SPKVER_WAIT=300

on() { # HOST COMMAND...: run a command on a host
    ip netns exec "$1" unshare --uts sh -c 'hostname "$0" && exec "$@"' "$@"
}

end() { # stop what runs on the hosts, and remove them
    tail --lines=1 "$folder"/*.log || true
    for host in head node1 node2; do
        ip netns pids $host | xargs --no-run-if-empty kill -KILL
        ip netns delete $host
        rm -r /etc/netns/$host
    done
}

start_network() {
    for host in head node1 node2; do
        ip netns add $host
        mkdir -p /etc/netns/$host
        printf '127.0.0.1 localhost\n10.77.0.1 head\n10.77.0.2 node1\n10.77.0.3 node2\n' > /etc/netns/$host/hosts
        ip -n $host link set lo up
    done
    ip -n head link add switch type bridge
    ip -n head address add 10.77.0.1/24 dev switch
    ip -n head link set switch up
    for number in 1 2; do
        ip -n head link add port$number type veth peer name wire netns node$number
        ip -n head link set port$number master switch up
        ip -n node$number address add 10.77.0.$((number + 1))/24 dev wire
        ip -n node$number link set wire up
    done
}

start_slurm() {
    mkdir -p "$folder"/slurm/{state,node1,node2}
    (umask 077 && head -c 1024 /dev/urandom > "$folder/slurm/munge.key")
    echo CgroupPlugin=cgroup/v1 > "$folder/cgroup.conf"
    cat > "$SLURM_CONF" << END
ClusterName=test
SlurmctldHost=head
SlurmUser=root
AuthInfo=socket=$folder/slurm/munge
StateSaveLocation=$folder/slurm/state
SlurmdSpoolDir=$folder/slurm/%n
SlurmctldPidFile=$folder/slurm/head.pid
SlurmdPidFile=$folder/slurm/%n.pid
SlurmctldLogFile=$folder/slurm/head.log
SlurmdLogFile=$folder/slurm/%n.log
JobCompType=jobcomp/filetxt
JobCompLoc=$folder/slurm/jobs
ProctrackType=proctrack/linuxproc
SelectType=select/cons_tres
NodeName=node[1-2] CPUs=2 RealMemory=4000
PartitionName=batch Nodes=ALL
END
    on head munged --force --key-file="$folder/slurm/munge.key" --socket="$folder/slurm/munge" \
        --pid-file="$folder/slurm/munge.pid" --seed-file="$folder/slurm/munge.seed" --log-file="$folder/slurm/munge.log"
    on head slurmctld
    on node1 slurmd
    on node2 slurmd
}

run_recipes() { # NAME ENGINE: run both recipes on the head, and compare their scores with the local ones
    for recipe in rsr2015 voiceprivacy; do
        command=(voiceprivacy --data "$folder/speech" --suffix _mcadams --set evaluation.resamples=50)
        command+=(--config recipes/voiceprivacy/config/simulated.yaml)
        [ $recipe = voiceprivacy ] || command=(rsr2015 svm-gmm --corpus "$folder/corpus")
        if [ "$1" = slurm ]; then
            : > "$folder/slurm/jobs"
            (sleep 30 && on head scancel "$(on head squeue --noheader --states=R --format=%A | head -1)") &
        fi
        started=$SECONDS
        command+=(--output "$folder/$1/$recipe" --engine "$2")
        on head "$bin/spkver" "${command[@]}" > "$folder/$1-$recipe.log" 2>&1
        echo "$1, $recipe: $((SECONDS - started)) s"
        [ "$1" != slurm ] || grep --only-matching 'JobState=[A-Z]*' "$folder/slurm/jobs" | sort | uniq --count
        [ "$1" != local ] || continue
        (cd "$folder/local/$recipe" && find . -path '*scores*' -type f) > "$folder/files"
        while read -r file; do cmp "$folder/local/$recipe/$file" "$folder/$1/$recipe/$file"; done < "$folder/files"
        echo "    $(wc --lines < "$folder/files") score files equal the local ones"
    done
}

trap end EXIT
start_network
"$bin/spkver" simulate rsr2015 "$folder/corpus" --speakers "${2:-36}"
"$bin/spkver" simulate voiceprivacy "$folder/speech" --set enrolled_f=6 --set enrolled_m=6 --set training=8
run_recipes local auto

mkdir -p /run/sshd
ssh-keygen -q -t ed25519 -N '' -f "$folder/key"
for host in node1 node2; do
    on $host /usr/sbin/sshd -h "$folder/key" -o AuthorizedKeysFile="$folder/key.pub" -o StrictModes=no -o PidFile=none
done
on head "$bin/dask" ssh node1 node2 --nworkers 2 --nthreads 1 --remote-python "$bin/python" \
    --ssh-private-key "$folder/key" > "$folder/ssh.log" 2>&1 &
run_recipes ssh tcp://node1:8786

start_slurm
sed -n '/# slurm_cluster.py/,/time.sleep/s/^    //p' docs/cluster.md |
    sed 's/=16/=2/; s/64GB/2GB/; s/24:00:00/00:01:00/; s/jobs=8/jobs=2/' > "$folder/slurm_cluster.py"
(cd "$folder/slurm" && on head "$bin/python" ../slurm_cluster.py > ../address 2> cluster.log) &
until grep --quiet --no-messages tcp "$folder/address"; do sleep 1; done
run_recipes slurm "$(cat "$folder/address")"

// SPDX-License-Identifier: Apache-2.0
#pragma once
// What stands below the options in the help of the program and of its verbs: at most 80 columns.

namespace ranktune::cli {

inline constexpr const char* footer = R"(To get going:
  ranktune init digits                     writes digits.toml and its data
  ranktune init mine --template program    for your own program
  ranktune run digits.toml                 runs it here
  srun --mpi=pmix ranktune run digits.toml   the same, in a Slurm job
  ranktune best digits                     the best trial

Exit codes: 0 ok, 1 run-time error, 2 usage or configuration, 3 too many failed
  trials, 4 no trial succeeded, 75 stopped early, resumable, 76 workers that
  lost their head; the same command goes on.)";

inline constexpr const char* run_footer = R"(Examples:
  ranktune run digits.toml               here, a worker for each spare core
  ranktune run digits.toml --local 4     with 4 workers
  srun --mpi=pmix ranktune run digits.toml
                                         in a Slurm job: the first task is the
                                         head, the others are workers
  ranktune run digits.toml               again: goes on where it was stopped
  ranktune run digits.toml study.num_trials=120
                                         extends a study, also a finished one

Exit codes: 0 ok, 1 run-time error, 2 usage or configuration, 3 too many failed
  trials, 4 no trial succeeded, 75 stopped early, resumable, 76 workers that
  lost their head; the same command goes on.)";

inline constexpr const char* supervise_footer = R"(Examples, the first two in a job script:
  ranktune supervise -- srun --mpi=pmix ranktune run digits.toml
  ranktune supervise -- mpirun ranktune run digits.toml
  ranktune supervise -- ranktune run digits.toml     on this machine

When a rank or a node dies, or the head is held up for too long (exit code 76),
the step ends. It is started again, without the nodes that are gone, and goes on
from the study's journal. After two starts in a row without anything new it is
given up. Exit code: the study's.)";

inline constexpr const char* predict_footer = R"(Examples:
  ranktune predict digits best --input new.h5 -o y.h5
  ranktune predict digits 17 --input digits.h5:val/x -o y.h5
  ranktune predict digits best --top 5 --combine vote -i x.npy -o y.h5
  ranktune predict digits best --python predict.py:predict -i x.npy -o y.h5
  srun --mpi=pmix ranktune predict digits best -i new.h5 -o y.h5

The same line goes on after a kill. -o is an HDF5 file: `y`, of classifiers also
`class`, a row for each sample. y.h5.predict is the study that makes it.)";

inline constexpr const char* map_footer = R"(Examples:
  ranktune map --input table.csv -- ./sim --x={x} --name={name}
  ranktune map --grid 'lr=[0.1,0.01]' 'seed=range(100)' -- python3 run.py {args}
  ranktune map --array 1-10000%50 -- bash job.sh
                                         was: sbatch --array=1-10000%50 job.sh
  ranktune map --input table.csv -- './sim {x} | gzip > {x}.gz'
                                         one word with blanks: for a shell
  ranktune map --kept --input table.csv -- python3 work.py
                                         one Python for many rows:
                                         for row in ranktune.tasks(): ...

The same line goes on after a kill. Results: map/results.csv, a line for each
task. In a job: this line behind srun; or --write, then submit map.toml.)";

inline constexpr const char* submit_footer = R"(Examples:
  ranktune submit digits.toml --time 1:00:00        one node, 4 workers
  ranktune submit bert.toml --nodes 2 --gpus-per-node 4 --time 8h --chain 3
  ranktune submit bert.toml --time 8h --print -- --qos=long --mail-type=END
  ranktune submit bert study.num_trials=120         a job like the last one

The same line again goes on with the study. Accounts, modules and the like stand
in a site file: /etc/ranktune/site.toml (or $RANKTUNE_SITE) and
~/.config/ranktune/site.toml.)";

inline constexpr const char* simulate_footer = R"(Examples:
  ranktune simulate digits.toml --groups 32         writes digits-simulated/
  ranktune simulate digits.toml --groups 32 --seeds 20 \
      --sweep scheduler.type=asha,median,fifo       a table
  ranktune simulate digits.toml --groups 256 --hours 8 \
      --model model.toml --faults faults.toml
  ranktune simulate digits.toml --groups 16 --model digits
                        with the curves and times of the study in digits/

Nothing is trained: learning curves are power laws, a table of yours, or those
of an earlier study.)";

} // namespace ranktune::cli

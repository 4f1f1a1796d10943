"""What is broken on purpose, what must hold, and the tests that show it. `make faults` runs them and prints this."""

from __future__ import annotations

from dataclasses import dataclass

T = "tests/"
F = "tests/faults/"
KILLED = F + "test_killed_writers.py::test_a_writer_killed_at_any_moment_leaves_a_whole_file"
FULL = (F + "test_full_disk.py::test_no_space_left", F + "test_full_disk.py::test_the_disk_takes_half")
CORRUPT = F + "test_corrupt_files.py::test_"
SAME = F + "test_same_file.py::test_"
BROKEN = F + "test_broken_runs.py::test_"


@dataclass(frozen=True)
class Fault:
    """One row: the fault, what must hold, and its tests, each a file and a function; [kind] is one case of it."""

    id: str
    broken: str
    holds: str
    tests: tuple[str, ...]


FAULTS = [
    Fault("kill-training", "kill -9 during training", "goes on to the same numbers, bit for bit",
          (T + "test_training.py::test_kill_minus_nine_and_resume_gives_the_same_numbers",)),
    Fault("kill-rank", "kill -9 of one of two ranks", "all end; torchrun's restart goes on to the same numbers",
          (T + "test_training_in_processes.py::"
           "test_a_rank_killed_in_the_middle_ends_the_run_and_a_restart_goes_on_to_the_same_numbers",)),
    Fault("kill-sweep", "kill -9 of a sweep", "its runs end; the next sweep makes the same records",
          (T + "test_sweep.py::test_killed_in_the_middle_it_goes_on_to_the_same_records",)),
    Fault("kill-worker", "kill -9 of a sweep's worker", "its run is taken up again, the record is the same",
          (T + "test_sweep.py::test_a_worker_that_is_killed_is_started_again",)),
    Fault("kill-ray", "kill -9 of a Ray worker", "its run is redone, records equal the local runner's",
          (T + "test_sweep.py::test_ray_redoes_the_run_of_a_killed_worker_to_the_same_records",)),
    Fault("no-ray", "a Ray cluster that does not answer", "its address is named, exit code 2",
          (T + "test_sweep.py::test_a_cluster_that_does_not_answer_is_named",)),
    Fault("kill-checkpoint", "kill -9 during a checkpoint write", "the one before is whole and is gone on from",
          (KILLED + "[checkpoint]",
           F + "test_killed_writers.py::test_a_run_killed_while_it_saves_goes_on_from_the_save_before")),
    Fault("kill-record", "kill -9 during a record write", "the old record is whole",
          (KILLED + "[record]", T + "test_files.py::test_a_kill_while_writing_leaves_the_old_file")),
    Fault("kill-other", "kill -9 while picture, bank or deck is written", "the old file is whole",
          (KILLED + "[picture]", KILLED + "[bank]", KILLED + "[deck]")),
    Fault("leftovers", "what a killed writer leaves beside", "goes with the next write, if nobody is at it",
          (F + "test_killed_writers.py::test_a_file_that_is_being_written_is_not_taken_for_a_leftover",)),
    Fault("kill-download", "kill -9 during a download", "goes on where it stopped",
          (T + "test_download.py::test_a_killed_download_is_resumed",)),
    Fault("kill-unpacking", "kill -9 while the archive is unpacked", "nothing is taken for whole",
          (T + "test_data.py::test_a_killed_unpacking_leaves_nothing_that_is_taken_for_whole",)),
    Fault("kill-notebook", "kill -9 while a chapter is executed", "the old notebook is whole, its kernel ends",
          (F + "test_killed_writers.py::test_a_killed_execution_keeps_the_old_notebook_and_leaves_no_kernel",
           KILLED + "[notebook]")),
    *(Fault(f"disk-{kind}", f"disk full while a {what} is written", "named, exit code 2, the old file whole",
            tuple(f"{test}[{kind}]" for test in FULL))
      for kind, what in (("checkpoint", "checkpoint"), ("record", "record"), ("picture", "picture"),
                         ("bank", "bank for the page"), ("deck", "deck"), ("notebook", "notebook"))),
    Fault("disk-download", "disk full during a download", "named, exit code 2, what came is kept and gone on from",
          (F + "test_full_disk.py::test_a_download_that_the_disk_refuses_is_kept_and_gone_on_from",
           F + "test_full_disk.py::test_an_archive_that_the_disk_refuses_is_not_half_unpacked")),
    Fault("read-only", "a folder that takes no file", "named before any work, exit code 2",
          (F + "test_full_disk.py::test_a_folder_that_takes_no_file_is_named_before_any_work",
           F + "test_full_disk.py::test_a_checkpoint_that_cannot_be_written_is_refused_before_training",
           T + "test_files.py::test_a_read_only_folder_is_named")),
    Fault("bad-checkpoint", "a damaged checkpoint", "every wrong bit is seen, the file is named and left alone",
          (CORRUPT + "no_damage_to_a_checkpoint_goes_unseen",
           CORRUPT + "a_checkpoint_with_a_wrong_field_is_named_and_left_alone",
           T + "test_checkpoints.py::test_a_checkpoint_cannot_run_code")),
    Fault("bad-record", "a damaged record", "named, or still a whole record",
          (CORRUPT + "a_damaged_record_is_named_or_still_a_record",
           CORRUPT + "the_command_names_a_damaged_record",
           T + "records/test_store.py::test_a_wrong_field_is_named")),
    Fault("bad-card", "a damaged file of cards", "named, or still whole cards",
          (CORRUPT + "a_damaged_file_of_cards_or_claims_is_named_or_still_one[cards",)),
    Fault("bad-claims", "a damaged file of claims", "named, or still whole claims",
          (CORRUPT + "a_damaged_file_of_cards_or_claims_is_named_or_still_one[claims",)),
    Fault("bad-data", "a damaged data file", "named, or not called CIFAR-10",
          (CORRUPT + "a_damaged_data_file_is_named_or_said_to_be_unverified",)),
    Fault("same-file", "two runs with one record or checkpoint", "the second is refused, the first is not touched",
          (SAME + "a_second_run_is_refused_and_a_killed_first_one_is_gone_on_from",
           SAME + "the_same_checkpoint_twice_in_one_process_is_refused_too",
           SAME + "never_two_are_inside_one_lock")),
    Fault("same-name", "four writers of one file without a lock", "it is whole, and so is all that is read",
          (SAME + "writers_that_ask_nobody_still_leave_one_whole_file",)),
    Fault("same-sweep", "two sweeps in one folder", "the second is refused",
          (T + "test_sweep.py::test_two_sweeps_do_not_share_a_folder",)),
    Fault("same-download", "two downloads into one folder", "one fetches, both have it",
          (T + "test_data.py::test_two_processes_at_once_share_one_download",
           T + "test_download.py::test_one_at_a_time_waits_and_a_killed_holder_frees_it")),
    Fault("nan", "NaN or infinity at a chosen step", "stops with step and recipe, exit code 2, saved numbers finite",
          (BROKEN + "a_run_stops_at_the_step_and_keeps_a_finite_checkpoint",
           T + "test_training.py::test_a_loss_that_is_not_finite_stops_with_step_and_recipe")),
    Fault("memory", "too little memory", "says batch, chunk, bytes and the way out, exit code 2",
          (BROKEN + "a_process_whose_memory_is_too_small_says_what_it_needed",
           BROKEN + "each_way_of_running_out_is_told_in_the_same_words",
           BROKEN + "the_bytes_are_those_that_a_batch_of_that_size_keeps",
           BROKEN + "a_chunk_takes_the_activations_of_its_images_and_the_logits_of_all",
           BROKEN + "other_errors_stay_what_they_are",
           BROKEN + "a_command_that_trains_nothing_says_it_too",
           BROKEN + "the_tensors_of_a_run_that_ran_out_are_let_go")),
    Fault("bad-chapter", "a cell that fails, hangs or ends its kernel", "named, the old notebook is whole",
          (T + "textbook/test_execute.py::test_a_failure_keeps_the_notebook_that_was_there",
           T + "textbook/test_execute.py::test_a_cell_that_takes_too_long_is_named",
           T + "textbook/test_execute.py::test_a_kernel_that_dies_is_named")),
]  # fmt: skip


def shows(fault: Fault, node: str) -> bool:
    """Whether the test `node`, as pytest names it, is one of the fault's."""
    return any(node.startswith(test) if "[" in test else node.partition("[")[0] == test for test in fault.tests)


def table(outcomes: dict[str, tuple[str, int]]) -> tuple[list[str], bool]:
    """Lines of the table, and whether all is green. `outcomes`: test to "passed" or what else, and inputs tried."""
    lines, green = [f"{'':5s}{'broken on purpose':48s}{'inputs':>6s}  what must hold"], True
    seen = 0
    for fault in FAULTS:
        found = [outcome for node, outcome in outcomes.items() if shows(fault, node)]
        states = {state for state, _ in found}
        state = "green" if states == {"passed"} else "RED" if states & {"failed", "error"} else "none"
        inputs = sum(count for _, count in found)
        green, seen = green and state == "green", seen + (state != "none")
        lines.append(f"{state:6s}{fault.broken:47s}{inputs:6,}  {fault.holds}")
    total = sum(count for _, count in outcomes.values())
    end = "nothing lost" if green else "not all green"
    lines.append(f"{seen} of {len(FAULTS)} faults tried, {total:,} inputs tried: {end}")
    return lines, green

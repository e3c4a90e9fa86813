"""What the product promises, and the tests that show it.

`RULES` holds the promises by area (R1 model, R2 settings, R3 compacting, R4 boundary, R5 micro-compaction, R6 session
memory, R7 written summary, R8 prompt too long, R9 snip, R10 hooks, R11 tools and library, R12 store, R13 server).
`KINDS` holds the kinds of faults that people reported, whose invariants hold for every input, and `CASES` each
reported fault. A proof is `file::function` under tests/; where there is none, `not yet: SUBJECT` names the work that
will bring it and `does not apply: WHY` says why there never will be one.
"""

from __future__ import annotations

NETWORK = "server/test_network.py"
TENANTS = "server/test_tenants.py"
HOSTS = f"{NETWORK}::test_a_foreign_host_or_origin_is_refused_on_every_route"
EXPORTS = "transcripts/test_every_export.py"
LOSS = "not yet: loss audit"
SAMPLING = "server/test_sampling.py"
SEARCH = "adapters/sqlite/operations/test_search.py"

RESCUING = "adapters/sqlite/operations/test_rescuing.py"
BACKUPS = "adapters/sqlite/operations/test_backups.py"
DISKS = "adapters/sqlite/test_disks.py"

EVENTS = "hooking/test_events.py"
FAULTS = "hooking/test_faults.py"

MIGRATIONS = "adapters/sqlite/test_migrations.py"
MODEL = "adapters/sqlite/test_against_the_model.py::TestArchive"
STORM = "faults/test_kill_storm.py::test_a_storm_of_kills_loses_nothing_that_was_acknowledged"
CUTS = "service/test_cut_points.py::test_every_path_gives_a_valid_context_at_every_tenth_cut"
REAL = "service/test_every_transcript.py::test_a_transcript_goes_in_is_compacted_read_and_undone"
LOOPS = "test_loops.py::test_a_loop_of_500_turns_stays_inside_its_window"
VALID = "messages/test_valid.py::test_whatever_stands_in_the_archive_the_view_is_valid"
STDIO = "server/test_stdio.py"
PINS = "service/test_pins.py"
AUTO = "service/test_auto.py"
RESTORE = "compaction/test_restore.py"
DUE = "compaction/test_memory_due.py"
EXTRACT = "compaction/test_extract.py"
CLIENT = "server/test_tools.py::test_an_imported_client_session_is_prepared_not_compacted"
SUMMARIES = "service/test_summaries.py"
WRITTEN = "service/test_cases_summary.py"
CORE = "test_cases_core.py"
COMMIT = "adapters/sqlite/operations/test_commit.py"
APPEND = "adapters/sqlite/operations/test_append.py"
MEMORY = "compaction/test_session_memory.py"
POLICY = "compaction/test_policy.py"
CONFIG = "test_config.py"
MICRO = "compaction/test_micro.py"
OLD = "compaction/test_old_results.py"
BREAKER = "service/test_breaker.py::test_after_three_automatic_compactions_that_came_to_nothing_the_next_are_refused"

RULES: dict[str, tuple[str, tuple[str, ...]]] = {
    # ---- model
    "R1.1": ("a session has a namespace, an id and facts", (f"{APPEND}::test_facts_replace_only_what_they_name", f"{APPEND}::test_sessions_of_two_tenants_do_not_meet")),
    "R1.2": ("a sub-agent is a child session", ("transcripts/test_cases.py::test_side_01_sub_agents_records_are_no_part_of_the_main_line", "cli/test_archive_commands.py::test_a_beginning_means_the_session_rather_than_its_sub_agents")),
    "R1.3": ("the archive only grows; compaction edits nothing", (MODEL, f"{COMMIT}::test_the_original_is_the_first_bytes_after_any_sequence")),
    "R1.4": ("bytes and unknown fields survive", ("transcripts/test_claude_code.py::test_every_type_is_kept_with_its_own_bytes", f"{APPEND}::test_any_text_is_stored_and_comes_back")),
    "R1.5": ("the uuid is the identity; other content is a conflict", (f"{APPEND}::test_other_content_under_a_known_uuid_is_archived_as_a_conflict", f"{APPEND}::test_equal_text_under_other_uuids_is_another_message")),
    "R1.6": ("a list sent again stores only what is new", ("adapters/sqlite/operations/test_snapshot.py::test_a_list_is_sent_again_if_it_begins_with_all_that_was_stored",)),
    "R1.7": ("the live branch is the parents of the newest record", ("messages/test_live.py::test_a_rewound_prompt_leaves_the_live_list_and_stays_in_the_archive", "messages/test_live.py::test_a_missing_parent_goes_on_from_the_record_before")),
    "R1.8": ("markers form a chain; undo goes back on it", (f"{COMMIT}::test_undo_twice_takes_back_two_boundaries_and_then_nothing", MODEL)),
    "R1.9": ("the live list is summary, preserved, appended since", (f"{COMMIT}::test_the_live_list_is_summary_and_kept_records_and_what_follows",)),
    "R1.10": ("what is given out is a valid request, repaired with warnings", (VALID, "messages/test_valid.py::test_an_orphan_result_becomes_quoted_text", CUTS)),
    "R1.11": ("an open call stays live and meets its late result", ("messages/test_valid.py::test_an_open_last_call_stays_open_unless_it_is_to_be_closed", "messages/test_valid.py::test_a_late_result_replaces_the_synthetic_one", f"{WRITTEN}::test_an_open_call_stays_and_its_result_finds_it")),
    "R1.12": ("text-holding leaves out results, thinking, meta", ("compaction/test_cuts.py::test_a_tail_below_the_minima_walks_back_until_both_are_met",)),
    "R1.13": ("only what a person typed is the user's words", ("messages/test_words.py::test_meta_records_summaries_and_sub_agents_prompts_are_nobodys_words", "messages/test_words.py::test_of_a_pasted_document_only_a_separate_first_or_last_paragraph_is_the_users")),
    # ---- settings
    "R2.1": ("enable beats disable beats both flags", (f"{CONFIG}::test_enabling_wins_over_disabling_and_over_both_flags", f"{CONFIG}::test_disabling_wins_over_both_flags", f"{CONFIG}::test_both_flags_must_be_on")),
    "R2.2": ("without the first flag nothing is extracted", (f"{CONFIG}::test_the_session_memory_flag_alone_stops_extraction", "service/test_extracting.py::test_where_session_memory_is_off_nothing_is_extracted")),
    "R2.3": ("limits: own variable, JSON, default; bad ones warned of", (f"{CONFIG}::test_each_limit_is_decided_by_its_own_variable_then_the_json_then_the_default", f"{CONFIG}::test_a_bad_limit_in_the_json_is_ignored_and_warned_of_once")),
    "R2.4": ("truthy words in any case", (f"{CONFIG}::test_these_are_truthy", f"{CONFIG}::test_these_are_not_truthy")),
    "R2.5": ("an unknown name is warned of with the nearest", (f"{CONFIG}::test_an_unknown_name_is_warned_of_with_the_nearest_known_one",)),
    "R2.6": ("historic names work and are noted", (f"{CONFIG}::test_historic_flags_work_are_noted_and_yield_to_the_new_names",)),
    "R2.7": ("one knob says where compaction is due", (f"{CONFIG}::test_where_compaction_is_due_may_be_a_share_or_tokens", f"{POLICY}::test_compaction_may_be_asked_for_at_a_share_or_a_number")),
    "R2.8": ("each figure is a setting with its documented default", (f"{CONFIG}::test_the_documented_defaults_are_the_defaults_in_force", "cli/test_configuration.py::test_json_lists_the_value_in_force_of_each")),
    "R2.9": ("presets carry the thresholds of known harnesses", (f"{CONFIG}::test_a_preset_brings_a_harness_thresholds", f"{CONFIG}::test_every_preset_is_known_to_the_documentation_and_gives_an_ordered_ladder")),
    # ---- compacting
    "R3.1": ("paths in order, each says why it declined", (f"{WRITTEN}::test_a_summary_is_written_and_the_context_is_valid", "compaction/test_pipeline.py::test_any_other_reason_is_a_failure_that_names_it")),
    "R3.2": ("instructions skip session memory", (f"{WRITTEN}::test_what_was_asked_for_reaches_the_writer_and_the_new_context", "compaction/test_pipeline.py::test_instructions_for_the_summary_need_a_written_one_unless_they_are_blank")),
    "R3.3": ("compacted is said only where less is sent; a client's is prepared", (CLIENT, "service/test_plans.py::test_a_client_s_own_history_is_only_prepared")),
    "R3.4": ("below five percent of gain nothing is written", (f"{MEMORY}::test_it_declines_where_less_than_five_percent_would_be_freed", "compaction/test_pipeline.py::test_too_small_a_gain_on_every_path_is_no_progress", "compaction/test_summary.py::test_nobody_is_asked_where_even_an_empty_summary_would_free_too_little")),
    "R3.5": ("the same attempt is not repeated", ("compaction/test_in_memory.py::test_the_same_attempt_has_the_same_name_and_any_change_another_one", "adapters/sqlite/operations/test_snapshot.py::test_declines_are_counted_and_the_last_attempt_is_remembered")),
    "R3.6": ("nothing to compact and below threshold are said with figures", ("compaction/test_pipeline.py::test_where_every_message_would_stay_there_is_nothing_to_compact", "compaction/test_pipeline.py::test_the_agents_trigger_waits_for_the_warning_level_and_the_numbers_are_given")),
    "R3.7": ("force waives waiting, breaker and blocking hook", ("service/test_breaker.py::test_a_forced_call_waives_it_and_begins_the_count_anew", f"{SUMMARIES}::test_a_blocking_hook_stops_the_compaction_unless_it_is_forced")),
    "R3.8": ("a target binds everything together; the tail yields", (f"{MEMORY}::test_a_plan_keeps_to_its_target_and_tells_the_tokens_that_are_there", f"{POLICY}::test_the_tails_limits_are_a_quarter_and_a_half_of_a_small_target")),
    "R3.9": ("a dry run gives a plan that is carried out as shown or not", ("service/test_plans.py::test_a_plan_is_carried_out_to_the_letter", "service/test_plans.py::test_what_changed_since_is_named_and_nothing_is_written")),
    "R3.10": ("levels for every window; an unknown one is said", (f"{POLICY}::test_every_threshold_lies_above_zero_and_below_the_window", f"{POLICY}::test_an_unknown_window_is_assumed_and_said_to_be_unknown", LOOPS)),
    "R3.11": ("overhead is added to every check", (f"{APPEND}::test_overhead_is_what_the_provider_counted_beyond_what_stood_before_the_answer", f"{APPEND}::test_an_overhead_that_was_given_wins")),
    "R3.12": ("three failures in a row pause automatic compaction", (BREAKER,)),
    "R3.13": ("the server compacts by itself only on request, never by asking", (f"{AUTO}::test_it_is_off_unless_switched_on", f"{AUTO}::test_no_agent_is_ever_asked", f"{AUTO}::test_an_append_that_makes_it_due_is_followed_by_a_compaction")),
    "R3.14": ("every append and status tells level and whether to compact", ("server/test_tools.py::test_appended_messages_come_back_unchanged_and_the_answer_tells_how_full_the_context_is", f"{POLICY}::test_a_level_begins_at_its_threshold")),
    "R3.15": ("a client's fill is its own usage, and only its boundary resets it", (f"{APPEND}::test_a_clients_fill_is_its_last_request_and_what_came_since", f"{COMMIT}::test_our_compaction_does_not_change_how_full_the_client_is")),
    "R3.16": ("a plan is for an hour, for one session, once", ("service/test_plans.py::test_plans_that_are_not_there_expired_or_another_sessions_are_refused", "service/test_plans.py::test_a_plan_works_once")),
    # ---- boundary
    "R4.1": ("boundary and summary are one transaction", ("adapters/sqlite/test_faults.py::test_an_operation_that_is_stopped_at_any_statement_leaves_nothing", STORM)),
    "R4.2": ("metadata tells what was done; absent parts are absent", (f"{COMMIT}::test_the_boundary_says_in_its_body_what_it_did", f"{COMMIT}::test_what_is_absent_is_absent_in_the_body")),
    "R4.3": ("discovered tools are a sorted union", ("adapters/sqlite/operations/test_snapshot.py::test_discovered_tools_are_sorted_and_named_once", f"{CORE}::test_names_of_discovered_tools_reach_the_plan")),
    "R4.4": ("appends meanwhile follow; other changes void the plan", (f"{COMMIT}::test_records_that_came_while_it_ran_follow_the_kept_ones", f"{COMMIT}::test_a_plan_is_void_once_its_base_has_changed")),
    "R4.5": ("undo gives the former context and hash; memory stays", (f"{COMMIT}::test_undo_gives_the_former_live_context_and_its_hash", f"{COMMIT}::test_undo_keeps_what_was_appended_since_and_the_memory", REAL)),
    "R4.6": ("a client's own boundary is understood", ("transcripts/test_native.py::test_live_context_after_a_newer_boundary_holds_the_kept_records", f"{COMMIT}::test_a_clients_own_boundary_is_known_again_on_a_second_import")),
    "R4.7": ("undo takes back clearings and snips of the boundary and after it", ("adapters/sqlite/operations/test_snips.py::test_undo_of_a_boundary_takes_back_the_snips_after_it_and_keeps_those_before", MODEL)),
    # ---- micro-compaction
    "R5.1": ("only known tools, through the call; names can be added", (f"{MICRO}::test_results_of_these_tools_may_be_cleared", f"{MICRO}::test_names_and_globs_add_tools_and_exclusions_win", f"{MICRO}::test_a_results_tool_is_found_through_its_call")),
    "R5.2": ("cleared content is constant and names how to get it", ("messages/test_clearing.py::test_a_cleared_result_keeps_its_id_and_says_how_to_get_it_back", "messages/test_clearing.py::test_a_cleared_error_stays_an_error_and_keeps_its_first_line")),
    "R5.3": ("older than an hour goes, odd times do not, newest five stay", (f"{MICRO}::test_a_result_older_than_an_hour_is_cleared_and_a_younger_one_stays", f"{MICRO}::test_missing_and_future_times_and_the_epoch_are_never_old", f"{MICRO}::test_the_newest_five_results_stay")),
    "R5.4": ("by tokens: trigger, protected sum, least saving", (f"{OLD}::test_the_newest_results_up_to_the_protected_sum_stay_and_everything_older_goes", f"{OLD}::test_what_saves_too_little_is_not_done_and_the_figures_are_told", f"{OLD}::test_a_real_micro_compaction_is_reproduced")),
    "R5.5": ("media go by size or request, the newest stays", (f"{MICRO}::test_media_of_unknown_size_count_as_large_and_small_ones_stay", f"{MICRO}::test_the_newest_medium_and_what_follows_the_last_answer_stay")),
    "R5.6": ("switches for outdated reads, repeats and failed inputs", ("compaction/test_superseded.py::test_every_switch_is_off_by_default", "compaction/test_superseded.py::test_a_read_of_a_file_written_since_is_outdated", "compaction/test_superseded.py::test_no_input_is_touched_in_a_message_id_that_holds_thinking")),
    "R5.7": ("twice is once; the answer tells what was freed", (f"{MICRO}::test_clearing_twice_is_clearing_once", f"{MICRO}::test_the_result_tells_tokens_by_tool_and_where_the_cached_prefix_ends")),
    "R5.8": ("originals come back", ("server/test_tools.py::test_old_results_are_cleared_and_each_comes_back_by_its_tool_use_id",)),
    "R5.9": ("a result no longer than its mark, and a cleared one, is no candidate", (f"{MICRO}::test_a_result_no_longer_than_what_would_stand_in_its_place_is_no_candidate", f"{MICRO}::test_content_that_starts_with_the_mark_counts_as_cleared")),
    "R5.10": ("a result above a limit goes once an answer followed", (f"{OLD}::test_a_result_above_the_limit_is_cleared_once_an_answer_follows",)),
    # ---- session memory
    "R6.1": ("a document of known sections within limits", ("messages/test_memory_document.py::test_the_headings_stand_in_their_order", "compaction/test_extract.py::test_no_section_costs_more_than_its_limit", "service/test_extracting.py::test_the_limits_of_the_settings_hold")),
    "R6.2": ("memory and its mark are one snapshot", ("adapters/sqlite/operations/test_snapshot.py::test_memory_and_its_mark_are_read_as_one",)),
    "R6.3": ("the extractor quotes records, the user's words first", ("compaction/test_extract.py::test_the_users_instructions_and_requests_come_first_word_for_word", "compaction/test_extract.py::test_every_quoted_line_stands_in_a_record", "compaction/test_extract.py::test_no_line_of_a_tool_reads_as_words_of_the_user_or_the_model")),
    "R6.4": ("extraction is due by tokens and calls", (f"{DUE}::test_the_first_is_due_at_ten_thousand_tokens_whoever_spoke_last", f"{DUE}::test_the_next_needs_five_thousand_more_and_three_calls", f"{DUE}::test_or_an_answer_without_any_call")),
    "R6.5": ("it declines with a reason and raises nothing", (f"{MEMORY}::test_it_declines_where_it_is_switched_off", f"{MEMORY}::test_it_declines_where_the_mark_is_not_in_the_archive", f"{MEMORY}::test_it_declines_where_what_must_stay_is_above_the_target_even_after_clearing")),
    "R6.6": ("a stale memory is brought up to date first", (f"{MEMORY}::test_a_memory_that_leaves_too_much_uncovered_is_brought_up_to_date_from_its_mark_on",)),
    "R6.7": ("the kept window by minima, maximum and floor", ("compaction/test_cuts.py::test_what_the_memory_does_not_cover_is_kept", "compaction/test_cuts.py::test_the_record_that_reaches_the_maximum_stays", "compaction/test_cuts.py::test_it_never_walks_past_the_floor")),
    "R6.8": ("no pair and no message id is split by the cut", ("compaction/test_cuts.py::test_results_in_every_kept_message_pull_their_calls_in", "compaction/test_cuts.py::test_adjusting_never_moves_forward_and_leaves_no_pair_split")),
    "R6.9": ("the summary message says how to go on", (f"{MEMORY}::test_the_summary_says_how_to_go_on_and_that_newer_messages_follow", f"{MEMORY}::test_lines_that_must_be_kept_go_in_word_for_word")),
    "R6.10": ("a lost standing instruction is added word for word", (f"{MEMORY}::test_an_instruction_that_nothing_else_holds_is_added_word_for_word",)),
    "R6.11": ("plans tell what left", (f"{MEMORY}::test_the_plan_counts_what_left",)),
    "R6.12": ("an audit of everything that was lost", (LOSS,)),
    "R6.13": ("work does not grow with the archive", ("adapters/sqlite/operations/test_snapshot.py::test_no_statement_walks_over_a_session_or_sorts_one",)),
    "R6.14": ("memory comes by itself, and notes written meanwhile are not lost", ("server/test_background.py::test_the_memory_comes_by_itself_and_a_closing_server_stops_what_runs", "service/test_extracting.py::test_notes_written_meanwhile_are_not_lost")),
    "R6.15": ("empty is headings, guidance and blanks", ("messages/test_memory_document.py::test_headings_guidance_and_blanks_are_empty",)),
    "R6.16": ("a known-complete memory starts the tail from the end", (f"{MEMORY}::test_a_memory_known_to_cover_everything_starts_from_the_end",)),
    "R6.17": ("the extractor goes on from memory and last summary", (f"{EXTRACT}::test_the_memory_so_far_goes_on_and_competes_with_new_lines", f"{EXTRACT}::test_a_summary_of_the_last_boundary_is_material")),
    "R6.18": ("the tail's largest results go where it would not fit", (f"{MEMORY}::test_the_largest_results_of_the_tail_are_cleared_where_it_would_not_fit",)),
    "R6.19": ("store errors and defects are no declines and are rolled back", ("adapters/sqlite/test_store.py::test_an_operation_that_fails_after_its_caller_is_cancelled_is_rolled_back", "adapters/sqlite/test_connection.py::test_a_full_disk_loses_only_what_was_not_acknowledged")),
    # ---- written summary
    "R7.1": ("material without media and hidden thinking; earlier summary in it", (f"{WRITTEN}::test_no_hidden_thinking_and_no_picture_reaches_the_writer", f"{WRITTEN}::test_the_next_summary_is_written_of_the_one_before")),
    "R7.2": ("too long material loses oldest rounds, three tries", (f"{SUMMARIES}::test_too_long_material_loses_its_oldest_rounds_and_each_request_is_smaller",)),
    "R7.3": ("the agent writes, across a restart, once, for an hour", (f"{SUMMARIES}::test_the_agent_writes_the_summary_also_after_a_restart", f"{SUMMARIES}::test_a_handle_works_once_for_an_hour_and_in_its_own_namespace_only")),
    "R7.4": ("a provider writes only where it is asked for", (f"{CONFIG}::test_the_calling_agent_writes_summaries_and_no_key_in_the_environment_changes_that", f"{SUMMARIES}::test_a_provider_writes_and_its_cost_is_told", "adapters/summarizers/test_provider.py::test_the_tries_are_counted_and_the_waits_between_them_grow")),
    "R7.5": ("the client's model writes by sampling, in both eras", (f"{SAMPLING}::test_the_clients_model_writes_the_summary", f"{SAMPLING}::test_a_client_without_sampling_is_not_asked_and_gets_no_error", f"{SAMPLING}::test_a_slow_client_is_given_up_after_the_limit_and_told_so", f"{SAMPLING}::test_the_call_that_is_made_again_is_answered_once")),
    "R7.6": ("bad summaries are refused and nothing is written", (f"{WRITTEN}::test_a_summary_that_is_none_writes_nothing_and_its_cause_is_named", f"{SUMMARIES}::test_a_bad_summary_is_refused_nothing_is_written_and_another_may_follow", f"{SUMMARIES}::test_a_copy_of_the_prompt_is_refused")),
    "R7.7": ("invented names are told", (f"{SUMMARIES}::test_invented_names_are_told",)),
    "R7.8": ("pins, plan, to-dos, tools, skills and files are restored", (f"{RESTORE}::test_what_was_found_is_put_back_in_its_order_and_of_files_the_five_newest", f"{PINS}::test_reinj_01_what_was_registered_is_in_the_answer_on_both_paths")),
    "R7.9": ("restoring keeps its limits and never half of the context", (f"{RESTORE}::test_the_limits_of_each_kind_hold_and_what_is_cut_says_so_and_how_to_get_it", f"{RESTORE}::test_it_never_leaves_more_than_half_of_the_context_and_never_shortens_the_memory")),
    "R7.10": ("what a client restores itself is left to it", (f"{PINS}::test_a_client_that_keeps_its_history_is_left_its_own_files_but_not_the_pins",)),
    "R7.11": ("instructions are in every try", (f"{SUMMARIES}::test_too_long_material_loses_its_oldest_rounds_and_each_request_is_smaller",)),
    "R7.12": ("where nobody writes, instructions become kept lines", (f"{SUMMARIES}::test_where_nobody_writes_instructions_become_lines_that_are_kept",)),
    "R7.13": ("the output limit is fixed", (f"{WRITTEN}::test_a_summary_is_written_and_the_context_is_valid", "adapters/summarizers/test_provider.py::test_the_output_limit_is_the_requests_capped_by_the_setting_whatever_the_length_of_the_material")),
    # ---- prompt too long
    "R8.1": ("the provider's figures are read, oldest rounds leave", (f"{SUMMARIES}::test_a_prompt_that_was_too_long_loses_its_oldest_rounds",)),
    "R8.2": ("no request is repeated as it was", (f"{WRITTEN}::test_after_a_prompt_that_was_too_long_whole_rounds_leave",)),
    "R8.3": ("at last the overrun and the largest messages are named", (f"{WRITTEN}::test_where_nothing_more_can_leave_the_overrun_and_the_largest_message_are_named",)),
    # ---- snip
    "R9.1": ("messages and ranges leave with their pairs", ("service/test_snipping.py::test_messages_by_name_and_by_range_leave", "compaction/test_snip.py::test_what_is_left_is_valid_and_no_pair_is_split")),
    "R9.2": ("what is protected stays; force spares the open call", ("service/test_snipping.py::test_what_is_protected_is_spared_with_the_reason_unless_it_is_forced", "service/test_snipping.py::test_an_open_call_stays_even_if_it_is_forced")),
    "R9.3": ("the status says where much could be snipped", ("service/test_snipping.py::test_the_status_tells_what_could_be_snipped_where_it_is_asked_and_notes_where_it_is_much",)),
    # ---- hooks
    "R10.1": ("each event once, on every path, not for a dry run", (f"{SUMMARIES}::test_hooks_run_once_on_each_event_and_their_lines_are_in_the_context", f"{SUMMARIES}::test_no_hook_runs_for_a_dry_run_or_where_nothing_is_done")),
    "R10.2": ("output is reused by a pending summary; a plan tells of it", (f"{SUMMARIES}::test_hook_lines_are_reused_by_a_pending_summary", "service/test_plans.py::test_lines_of_hooks_are_told_as_a_change")),
    "R10.3": ("exit 2 blocks, other failures warn, time is limited", ("adapters/hooks/test_commands.py::test_exit_2_of_a_pre_hook_blocks_with_its_standard_error_and_later_hooks_still_run", "adapters/hooks/test_commands.py::test_any_other_exit_is_a_warning_with_the_first_line_of_standard_error", "adapters/hooks/test_process.py::test_a_hook_that_hangs_is_ended_at_its_time_limit_and_reported")),
    "R10.4": ("entry points do the same", ("adapters/hooks/test_entry_points.py::test_several_are_called_by_name_and_their_results_are_joined",)),
    "R10.5": ("a bad verdict afterwards is a warning", (f"{SUMMARIES}::test_hooks_run_once_on_each_event_and_their_lines_are_in_the_context",)),
    "R10.6": ("the owner names the file; sessions never reach a command", ("adapters/hooks/test_file.py::test_a_file_that_others_may_change_is_refused", "adapters/hooks/test_commands.py::test_text_of_a_session_is_never_part_of_a_command")),
    "R10.7": ("a client's hook never fails it; faults are told later", (f"{FAULTS}::test_an_archive_that_cannot_be_used_is_silence_a_note_and_one_line_at_the_start", f"{FAULTS}::test_any_input_is_taken_with_silence", "cli/test_doctor.py::test_what_hooks_kept_to_themselves_is_told_and_then_forgotten")),
    "R10.8": ("a client's summary is told what to keep; what it lost is given", (f"{EVENTS}::test_before_a_compaction_archive_and_memory_are_brought_up_to_date", f"{EVENTS}::test_after_a_compaction_everything_is_given_back_at_once", f"{EVENTS}::test_what_neither_summary_nor_injection_held_follows_with_the_next_prompt_once", "hooking/test_other_clients.py::test_codex_gives_back_what_its_summary_lost_and_says_nothing_to_the_summary_itself", "hooking/test_other_clients.py::test_gemini_cli_is_given_it_with_the_prompt_after_a_compaction_once", "hooking/test_other_clients.py::test_opencode_hands_its_session_over_and_is_given_the_same_again")),
    "R10.9": ("a client's transcript is picked up once, whoever does it", (f"{FAULTS}::test_hooks_of_two_clients_and_many_at_once_store_everything_once", f"{FAULTS}::test_a_hook_that_is_killed_in_the_middle_leaves_what_the_next_one_completes", f"{EVENTS}::test_the_clients_summary_is_a_boundary_of_the_archive_once", "server/test_follow.py::test_only_a_file_that_has_changed_is_read")),
    # ---- tools and library
    "R11.1": ("three profiles of tools", ("server/test_listing.py::test_a_client_that_keeps_its_history_can_be_offered_fewer_tools", "server/test_listing.py::test_only_the_full_profile_has_all_tools_and_one_that_destroys")),
    "R11.2": ("the listing is small, the parameters plain and known", ("server/test_listing.py::test_the_listing_stays_small", "server/test_listing.py::test_no_text_parameter_may_be_null_and_none_has_a_made_up_title", "server/test_listing.py::test_the_core_tools_have_the_names_and_parameters_that_clients_rely_on")),
    "R11.3": ("answers come in pages that join to the whole", ("service/test_paging.py::test_the_pages_together_are_the_whole_and_each_is_below_its_size",)),
    "R11.4": ("a pin is a text that stays, replaced or taken back by name", (f"{PINS}::test_pins_stand_in_the_context_word_for_word_after_each_compaction_and_once", f"{PINS}::test_a_pin_is_taken_back_by_its_name", "server/test_pin_tools.py::test_what_cannot_be_pinned_is_refused_with_what_to_do")),
    "R11.5": ("all output formats", (f"{EXPORTS}::test_any_conversation_is_read_back_from_every_format_with_all_that_was_said", "transcripts/validity/test_there_and_back.py::test_a_valid_list_goes_in_and_comes_out_as_its_provider_saw_it", "providers/test_request_types.py::test_every_transcript_goes_out_in_the_types_of_each_provider")),
    "R11.6": ("a session may be left out over stdio where it is clear", ("server/test_follow.py::test_a_call_without_an_id_means_what_the_client_is_at_and_is_up_to_date", "server/test_sessions.py::test_the_only_active_session_is_meant_and_an_older_one_is_not", "server/test_sessions.py::test_over_a_network_a_session_must_be_named_and_no_file_is_read")),
    "R11.7": ("files are read inside of the roots only", ("server/test_roots.py::test_links_and_dots_are_followed_before_the_folder_is_checked",)),
    "R11.8": ("the library is pure and light", ("test_library.py::test_the_library_imports_neither_mcp_nor_a_database", "test_library.py::test_a_conversation_shrinks_below_its_target_and_is_valid")),
    "R11.9": ("resources, a prompt and completion of ids", ("server/test_resources.py::test_every_resource_of_a_session_is_offered", "server/test_resources.py::test_ids_are_completed_in_templates_and_the_prompt", "server/test_resources.py::test_the_prompt_names_the_session_and_what_has_to_be_kept")),
    "R11.10": ("errors say what was wrong and what to do, without content", ("server/test_tools.py::test_transcripts_that_cannot_be_read_are_refused_without_their_content",)),
    "R11.11": ("instructions are short and name real tools", ("server/test_listing.py::test_the_instructions_reach_the_client_and_name_only_tools_that_are_there",)),
    "R11.12": ("clients are installed into, with resume and handoff", ("cli/test_install_command.py::test_the_whole_command_tests_itself_installs_and_takes_back", "cli/test_install.py::test_uninstalling_leaves_settings_byte_for_byte_as_they_were", "cli/test_install_others.py::test_every_hook_names_this_program_whatever_its_path", "cli/test_resume.py::test_a_new_session_holds_the_compacted_context_and_the_old_one_stays", "cli/test_handoff.py::test_a_brief_holds_rules_work_files_git_and_how_to_search")),
    "R11.13": ("sessions are made, listed, forked and deleted", ("service/test_sessions.py::test_a_fork_begins_with_the_same_context_and_goes_its_own_way", "server/test_session_tools.py::test_sessions_are_made_listed_and_deleted")),
    "R11.14": ("boundaries are listed with what is in effect", ("service/test_sessions.py::test_boundaries_tell_what_was_done_and_what_is_in_effect",)),
    "R11.15": ("a context is validated and exported on request", ("transcripts/validity/test_laws.py::test_a_repair_leaves_nothing_that_would_be_refused_and_a_second_one_changes_nothing", f"{EXPORTS}::test_every_transcript_goes_out_valid_for_every_provider_whole_and_compacted", "server/test_exchange_tools.py::test_pages_of_an_export_join_to_a_list_that_is_accepted", "cli/test_format_export.py::test_all_gives_what_a_compaction_took_out")),
    "R11.16": ("import is told progress and adds nothing the second time", ("server/test_tools.py::test_a_transcript_is_imported_by_path_with_progress_and_its_repetition_adds_nothing",)),
    # ---- store
    "R12.1": ("one private file", ("adapters/sqlite/test_connection.py::test_file_wal_and_folder_are_for_their_owner_alone",)),
    "R12.2": ("acknowledged means there after a kill", (STORM, f"{STDIO}::test_what_was_acknowledged_is_there_after_a_kill")),
    "R12.3": ("one suite of tests over every store", ("adapters/sqlite/test_store.py::test_every_method_of_the_port_works_in_memory",)),
    "R12.4": ("everything ever stored can be searched", ("adapters/sqlite/operations/test_search.py::test_everything_that_can_be_read_is_found",)),
    "R12.5": ("searches stay fast in very large archives", (f"{SEARCH}::test_what_a_search_costs_does_not_grow_with_the_archive", f"{SEARCH}::test_a_search_that_ran_out_of_time_says_so_and_can_go_on")),
    "R12.6": ("damage is found, named, and no message that is whole is lost to it", (f"{RESCUING}::test_a_damaged_message_is_named_and_the_others_can_be_read", f"{RESCUING}::test_a_deep_look_finds_what_does_not_fit", "cli/test_keeping.py::test_a_damaged_file_is_said_by_each_face", "server/test_damaged_archive.py::test_calls_say_what_to_do_and_the_server_lives_on")),
    "R12.7": ("what can be read of a damaged file is rescued into a new one", (f"{RESCUING}::test_a_damaged_page_costs_no_more_than_what_stood_on_it", f"{RESCUING}::test_whatever_is_damaged_what_is_saved_is_what_was_said", f"{RESCUING}::test_what_was_removed_does_not_come_back")),
    "R12.8": ("a backup is made while others write, and put back without loss", (f"{BACKUPS}::test_a_backup_of_an_archive_in_use_holds_what_was_acknowledged", f"{BACKUPS}::test_what_a_restored_archive_was_before_is_kept", f"{BACKUPS}::test_an_archive_that_another_process_has_open_is_left_alone")),
    "R12.9": ("whole sessions go into another archive byte for byte", ("adapters/sqlite/operations/test_raw.py::test_an_export_of_the_import_is_the_export", "adapters/sqlite/operations/test_raw.py::test_life_goes_on_there_as_it_would_have_here")),
    "R12.10": ("a full, read-only or shared disk and a clock that jumps lose nothing", (f"{DISKS}::test_a_full_disk_refuses_what_does_not_fit_and_nothing_else", f"{DISKS}::test_on_a_read_only_disk_reading_works_and_writing_says_why_not", f"{DISKS}::test_an_archive_that_comes_to_a_shared_folder_leaves_its_wal", f"{DISKS}::test_where_it_is_asked_for_every_connection_waits_for_the_disk", "service/test_clock_jumps.py::test_messages_keep_their_order_and_a_compaction_can_be_undone")),
    "R12.11": ("archives of every schema are brought up to date, by many at once, killed in between", (f"{MIGRATIONS}::test_everything_in_an_old_archive_is_there_and_sound", f"{MIGRATIONS}::test_several_processes_bring_an_old_archive_up_to_date_at_once", f"{MIGRATIONS}::test_a_migration_that_is_killed_before_any_of_its_statements_loses_nothing", f"{MIGRATIONS}::test_a_larger_archive_whose_migrations_are_killed_at_any_moment_is_whole")),
    "R12.12": ("many processes wait for each other, and nobody in vain", ("faults/test_crowd.py::test_servers_hooks_and_the_command_line_wait_for_each_other_and_for_whoever_holds_the_lock", "faults/test_crowd.py::test_a_program_that_keeps_the_lock_but_for_moments_keeps_nobody_out_for_good")),
    "R12.13": ("whatever comes in is refused with nothing stored, or stored once and valid", ("fuzz/test_fuzz.py::test_a_mutant_is_refused_clearly_or_stored_once_and_valid", "fuzz/test_fuzz.py::test_any_row_of_tool_calls_is_answered_or_refused_by_a_code", "fuzz/test_fuzz.py::test_a_changed_export_is_refused_or_taken_whole")),
    # ---- server
    "R13.1": ("both protocol eras over stdio", (f"{STDIO}::test_a_client_that_opens_with_discover_is_served_without_a_handshake", "server/test_stdio_streams.py::test_every_handshake_version_is_served_and_an_unknown_one_gets_the_latest")),
    "R13.2": ("HTTP on loopback, checked hosts, tokens", (HOSTS, f"{NETWORK}::test_nobody_listens_beyond_this_machine_without_a_token", f"{TENANTS}::test_without_a_good_token_nothing_is_answered", f"{TENANTS}::test_another_tenants_session_is_unknown_to_every_tool")),
    "R13.3": ("nothing but the protocol on stdout", (f"{STDIO}::test_text_is_utf8_whatever_the_locale_and_logs_stay_off_the_wire",)),
    "R13.4": ("a clean end when input ends", (f"{STDIO}::test_requests_from_a_pipe_are_all_answered_before_the_process_ends", f"{STDIO}::test_a_call_that_cannot_be_stopped_does_not_keep_the_process", f"{STDIO}::test_the_process_has_less_than_five_seconds_to_end_and_first_to_answer")),
    "R13.5": ("what is derived is masked; forgetting is complete", ("messages/test_masking.py::test_keys_of_known_providers_are_taken_out_wherever_they_stand", "compaction/test_material.py::test_keys_reach_no_writer_whatever_they_stand_in", "server/test_resources.py::test_the_transcript_is_masked", "cli/test_forget.py::test_a_session_goes_from_tables_index_and_wal", "cli/test_forget.py::test_a_project_goes_with_its_sub_agents_and_others_stay")),
    "R13.6": ("search stays in the project", ("server/test_tools.py::test_a_search_without_a_session_stays_in_the_project", "adapters/sqlite/operations/test_search.py::test_only_sessions_of_the_tenant_and_the_project_are_searched")),
    "R13.7": ("a deleted session is gone from the file", ("adapters/sqlite/operations/test_deleting.py::test_its_rows_and_bodies_are_overwritten_in_the_file",)),
    "R13.8": ("a switch file turns a project off", (f"{FAULTS}::test_a_switch_file_is_obeyed_at_once", "server/test_follow.py::test_a_switch_file_is_obeyed_at_once")),
}  # fmt: skip

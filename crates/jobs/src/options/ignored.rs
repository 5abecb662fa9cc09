//! Options that mean nothing in virtual time. They are named in the notes of a result.

/// Reasons, each with the names of its options; other names of an option follow it after `|`.
pub(super) static OPTIONS: &[(&str, &str)] = &[
    (
        "how the host does its work, which takes no virtual time here",
        "direct buffered atomic invalidate thread mem|iomem iomem_align|mem_align hugepage-size lockmem \
         nice prio prioclass cpumask cpus_allowed cpus_allowed_policy numa_cpu_nodes numa_mem_policy \
         clocksource gtod_reduce gtod_cpu uid gid cgroup cgroup_nodelete cgroup_weight ioscheduler \
         cpuload cpuchunks userspace_reap nowait cmdprio_percentage cmdprio_class cmdprio \
         cmdprio_bssplit hipri hipri_percentage fixedbufs registerfiles sqthread_poll sqthread_poll_cpu \
         nonvectored uncached force_async disk_util stats profile",
    ),
    (
        "belongs to an I/O engine of the host",
        "cmd_type readfua writefua md_per_io_size pi_act pi_chk apptag apptag_mask verify_mode uri \
         xnvme_async xnvme_sync xnvme_admin xnvme_dev_nsid xnvme_iovec libblkio_driver libblkio_path \
         num_range",
    ),
    (
        "about files of the host, and a namespace has none",
        "directory lockfile filename_format unique_filename openfiles fallocate fadvise_hint \
         create_serialize create_fsync create_on_open create_only allow_file_create allow_mounted_write \
         pre_read unlink unlink_each_loop overwrite",
    ),
    (
        "about the bytes written, and replays carry none",
        "zero_buffers refill_buffers scramble_buffers buffer_pattern buffer_compress_percentage \
         buffer_compress_chunk dedupe_percentage dedupe_mode dedupe_working_set_percentage dedupe_global",
    ),
    (
        "every run repeats, and each job has a generator of its own (seeded by --seed and randseed)",
        "softrandommap use_os_rand",
    ),
    (
        "matters only with verify, which is refused",
        "do_verify verify_interval verify_offset verify_pattern verify_fatal verify_dump verify_async \
         verify_async_cpus verify_backlog verify_backlog_batch verify_state_load verify_state_save \
         experimental_verify verifysort verifysort_nr trim_verify_zero trim_backlog trim_backlog_batch \
         verify_header_seed verify_write_sequence",
    ),
    (
        "requests are submitted as soon as there is room in iodepth, one at a time",
        "iodepth_batch|iodepth_batch_submit iodepth_batch_complete_min|iodepth_batch_complete \
         iodepth_batch_complete_max iodepth_low io_submit_mode serialize_overlap",
    ),
    ("acts on a page cache, and the namespace is used directly", "sync_file_range"),
    (
        "about how fio itself reports",
        "bwavgtime iopsavgtime log_offset log_entries log_hist_msec log_hist_coarseness write_hist_log \
         log_max_value log_prio log_compression log_compression_cpus log_store_compressed log_unix_epoch \
         log_alternate_epoch log_alternate_epoch_clock_id log_window_value log_issue_time \
         block_error_percentiles significant_figures unit_base disable_lat disable_clat disable_slat \
         disable_bw_measurement disable_bw slat_percentiles error_dump",
    ),
    ("a run ends with its first error", "ignore_error continue_on_error exitall_on_error"),
    (
        "matters only with another option, which is refused",
        "merge_blktrace_scalars merge_blktrace_iters rate_cycle latency_window latency_percentile \
         latency_run flow_id flow_sleep steadystate_duration steadystate_ramp_time steadystate_check_interval",
    ),
];

"""What the seeds name, document by document: docs/reference/seeds.md says what each is called here.

`SIGNATURES` are the functions and classes that are called as in a seed, by their names here, with the seed's
parameters in its order. `FIELDS` are values with named fields and enums. `OTHERS` is everything else.
"""

from __future__ import annotations

DEAD_LETTERS, BREAKERS = "library.FailedOperationRepository", "library.CircuitBreakerStateRepository"
OUTBOX, COOLDOWNS = "library.Outbox", "library.CooldownStore"
DRIFT, SHADOW = "library.DriftReconciler", "library.ShadowLogger"

SIGNATURES = {
    f"{DEAD_LETTERS}.create": """domain failure_type error_message error_code entity_type entity_id
        entity_refs user_id snapshot_data request_data response_data metadata retry_count max_retries
        next_action_hint recommended_action expires_at""",
    f"{DEAD_LETTERS}.get_by_id": "id",
    f"{DEAD_LETTERS}.get_pending_by_domain": "domain limit",
    f"{DEAD_LETTERS}.get_pending_count_by_domain": "domain",
    f"{DEAD_LETTERS}.update_status": """id status resolution_type resolution_note resolved_by_id
        recommended_action""",
    f"{DEAD_LETTERS}.increment_retry_count": "id",
    f"{DEAD_LETTERS}.mark_as_resolved": "id resolution_type resolution_note resolved_by_id",
    f"{DEAD_LETTERS}.get_expired_operations": "before_date limit",
    f"{DEAD_LETTERS}.bulk_update_status": "ids status",
    f"{DEAD_LETTERS}.find_by_status": "status domain failure_type limit",
    f"{DEAD_LETTERS}.find": "status domain failure_type offset limit",
    f"{DEAD_LETTERS}.count": "status domain failure_type",
    f"{DEAD_LETTERS}.count_created_in_window": "start end",
    f"{DEAD_LETTERS}.find_replayable": "max_retries domain failure_type limit",
    f"{DEAD_LETTERS}.find_sla_breached": "current_time sla_thresholds",
    f"{DEAD_LETTERS}.find_expired": "current_time",
    f"{DEAD_LETTERS}.get_statistics": "",
    f"{DEAD_LETTERS}.get_facet_counts": "status domain",
    f"{DEAD_LETTERS}.try_acquire_for_replay": "id max_retries force",
    f"{DEAD_LETTERS}.complete_replay": "id success resolution_type note resolved_by_id error_details",
    f"{DEAD_LETTERS}.release_stale_replaying": "older_than_minutes",
    f"{DEAD_LETTERS}.archive_old_resolved": "older_than_days",
    f"{DEAD_LETTERS}.purge_archived": "ids older_than_days",
    f"{DEAD_LETTERS}.get_cleanup_stats": "",
    f"{DEAD_LETTERS}.count_archived_older_than": "older_than_days",
    f"{DEAD_LETTERS}.count_all": "",
    f"{DEAD_LETTERS}.count_by_domain": "domain",
    f"{DEAD_LETTERS}.get_oldest_ids": "count domain",
    f"{DEAD_LETTERS}.delete": "entry_id",
    f"{DEAD_LETTERS}.evict_oldest": "count domain",
    f"{DEAD_LETTERS}.compress_and_evict_oldest": "count domain",
    f"{DEAD_LETTERS}.store_compressed_entry": "entry",
    f"{DEAD_LETTERS}.get_compressed_entries": "domain status limit",
    f"{DEAD_LETTERS}.get_compressed_summary": "",
    f"{DEAD_LETTERS}.update_compressed_status": "entry_id new_status",
    f"{BREAKERS}.get_or_create": "service_name",
    f"{BREAKERS}.get_by_service_name": "service_name",
    f"{BREAKERS}.update_state": """service_name state failure_count success_count opened_at last_failure_at
        half_open_request_count reset_half_open_count""",
    f"{BREAKERS}.record_failure": "service_name",
    f"{BREAKERS}.record_success": "service_name",
    f"{BREAKERS}.record_success_with_close_check": "service_name success_threshold",
    f"{BREAKERS}.set_manual_control": "service_name state controlled_by_id reason expires_at",
    f"{BREAKERS}.clear_manual_control": "service_name preserve_reason",
    f"{BREAKERS}.get_all_states": "",
    f"{BREAKERS}.get_open_states": "limit",
    f"{BREAKERS}.reset": "service_name",
    f"{BREAKERS}.delete_state": "service_name",
    f"{BREAKERS}.atomic_force_open": "service_name reason controlled_by_id ttl_minutes",
    f"{BREAKERS}.atomic_force_close": "service_name reason controlled_by_id",
    f"{BREAKERS}.atomic_reset": "service_name reason controlled_by_id",
    f"{BREAKERS}.try_acquire_half_open_slot": "service_name limit stuck_timeout_seconds",
    f"{BREAKERS}.reset_half_open_count": "service_name",
    DRIFT: "min_jitter_seconds max_jitter_seconds on_reconciled",
    f"{DRIFT}.get_jitter": "",
    f"{DRIFT}.reconcile": "service_name l1_state l2_state l1_updated_at l2_updated_at",
    f"{DRIFT}.schedule_reconciliation_sync": "service_name do_reconcile",
    f"{DRIFT}.schedule_reconciliation_async": "service_name do_reconcile",
    f"{DRIFT}.get_history": "",
    f"{DRIFT}.get_stats": "",
    f"{DRIFT}.clear_history": "",
    "library.get_drift_reconciler": "",
    f"{SHADOW}.reset_instance": "",
    f"{SHADOW}.set_max_entries": "max_entries",
    f"{SHADOW}.record_sync_failure": "service_name intended_state error adapter_type operation",
    f"{SHADOW}.get_unsynced_records": "",
    f"{SHADOW}.get_all_records": "",
    f"{SHADOW}.mark_as_synced": "service_name",
    f"{SHADOW}.mark_all_as_synced": "",
    f"{SHADOW}.get_stats": "",
    f"{SHADOW}.clear": "",
    f"{SHADOW}.analyze_l2_failures": "",
    f"{SHADOW}.get_records_by_service": "service_name",
    f"{SHADOW}.get_records_by_time_range": "start_time end_time",
    "library.get_shadow_logger": "",
    "library.AbandonedHook.on_abandoned": "signal",
    "library.BackoffPolicy.delay": "attempts",
    OUTBOX: "session_factory outbox status_counts_source audit_sink",
    f"{OUTBOX}.claim_batch": "limit lease",
    f"{OUTBOX}.enqueue": "session entries",
    f"{OUTBOX}.list_abandoned": "limit",
    f"{OUTBOX}.list_scheduled": "limit",
    f"{OUTBOX}.mark_abandoned": "entry error",
    f"{OUTBOX}.mark_failed": "entry error next_attempt_at",
    f"{OUTBOX}.mark_scheduled": "entry resume_at",
    f"{OUTBOX}.mark_succeeded": "entry on_subject_complete",
    f"{OUTBOX}.requeue": "entry_ids",
    f"{OUTBOX}.status_counts": "",
    "library.SagaRunner": "registry outbox audit max_attempts batch_size backoff on_abandoned",
    "library.SagaRunner.run_once": "",
    "library.StatusCountsSource.status_counts": "outbox session_factory",
    f"{COOLDOWNS}.get_until": "host",
    f"{COOLDOWNS}.set_until": "host until_monotonic reason",
    f"{COOLDOWNS}.clear": "host",
    f"{COOLDOWNS}.prune_expired": "",
    "library.RetryPolicy.calculate_delay": "attempt",
}

FIELDS = {
    "breakers.layered.drift.DriftReconciliationRecord": """service_name l1_state l2_state l1_updated_at
        l2_updated_at winner result reconciled_at jitter_seconds""",
    "breakers.layered.outage_log.L2SyncFailureRecord": """service_name intended_state failure_time
        error_message l1_state_at_failure adapter_type operation synced_after_recovery recovery_time""",
    "library.BackoffPolicy": "base_delay lease max_delay",
    "library.OutboxEntry": """attempts corrections enqueued_at entry_id last_attempt_at last_error
        next_attempt_at operation ref resolver status subject_id""",
    "library.RetryPolicy": """max_attempts backoff_strategy base_delay multiplier max_backoff_delay jitter
        retry_status_codes timeout retry_non_idempotent""",
    "library.AbandonedSignal": "attempts entry_id error operation resolver subject_id",
    "library.OutboxOperation": "ERASE RECTIFY",
    "library.OutboxStatus": "PENDING IN_FLIGHT SUCCEEDED FAILED SCHEDULED ABANDONED",
    "library.BackoffStrategy": "EXPONENTIAL LINEAR FIXED",
    "library.BreakerState": "CLOSED OPEN HALF_OPEN",
    "model.AttemptOutcome": "SUCCESS FAILURE TIMEOUT CIRCUIT_OPEN",
    "model.DeadLetterStatus": """PENDING REVIEWING REPLAYING RESOLVED REQUIRES_REVIEW PERMANENTLY_FAILED
        REJECTED ARCHIVED""",
    "library.CircuitBreakerStateData": """service_name state failure_count success_count opened_at
        last_failure_at half_open_request_count half_open_window_started_at manually_controlled
        control_reason""",
}

OTHERS = {
    "Baldur's repositories": """FailedOperationRepository InMemoryFailedOperationRepository
        SQLFailedOperationRepository RedisDLQRepository ResilientStorageBackend FailedOperation
        FailedOperationData DLQCompressedEntry previous_total_retries force_redrive_count by_status
        by_domain resolved_older_than_30_days archived_older_than_90_days manual_check
        CircuitBreakerStateRepository CircuitBreakerStateData CircuitBreakerCloseAttempt
        CIRCUIT_BREAKER_CLOSED should_allow recovery_timeout""",
    "Baldur's layered breakers": """DriftReconciliationResult DriftReconciliationRecord
        L2SyncFailureRecord ShadowLogger""",
    "the saga and outbox": """AbandonedHook AbandonedSignal StoredSubjectId OutboxOperation OutboxStatus
        SqlStatusCountsSource StatusCountsSource ResolverRegistry Resolver RectifyingResolver
        RetentionOnlyResolver VerifyingResolver erase_subject rectify_subject schedule_erasure
        verify_absent AuditSink DatabaseAuditSink SubjectRef Correction ConfigurationError ResolverError
        Rectifier effaced_outbox payload ref_kind ref_value ref_extra already_absent verified_expiry
        prior_attempts prior_error ERASURE_STEP_SUCCEEDED ERASURE_STEP_FAILED ERASURE_COMPLETED
        ERASURE_REQUEUED ERASURE_EXPIRY_SCHEDULED ERASURE_EXTERNAL_VERIFIED
        ERASURE_EXTERNAL_VERIFICATION_FAILED RECTIFICATION_STEP_SUCCEEDED RECTIFICATION_STEP_FAILED
        RECTIFICATION_COMPLETED""",
    "DocsToKG's breakers": """SQLiteCooldownStore RedisCooldownStore db_path breaker_cooldowns until_wall
        sqlite_lock cooldown_store BreakerRegistry BreakerOpenError RequestRole METADATA artifact allow
        on_success on_failure role resolver status exception retry_after_s update_host_policy
        success_threshold fail_counter success_counter call_failed call_success throw_new_error_on_trip
        CircuitBreakerListener request_with_retries breaker_registry parse_retry_after_header breaker_meta
        breaker_open cooldown_ms cooldown_remaining_ms seconds window HostMetrics HostAdvice read_metrics
        advise http_events AutoTunePlan BreakerAutoTuner BreakerAdvisor rate_registry clamp suggest
        enforce install_breaker_cli install_breaker_advisor_cli make_registry telemetry_db_path
        known_hosts load_breaker_config yaml_path cli_host_overrides breaker_yaml breaker_host_overrides
        listener_factory NetworkBreakerListener BreakerTransitionRecord breaker_transitions event_type
        run_id scope old_state new_state reset_timeout_s SQLITE_SCHEMA_VERSION breaker_before_call
        breaker_success breaker_failure breaker_state_change opens_per_hour time_saved_ms
        success_after_open_rate open_reason_mix defaults fail_max retry_after_cap_s classify
        failure_statuses neutral_statuses roles trial_calls half_open jitter_ms hosts resolvers advanced
        rolling enabled window_s threshold_failures cooldown_s DownloadRun""",
    "proxywhirl's retries": """RetryPolicy BackoffStrategy validate_status_codes ProxyRotator
        CircuitBreaker CircuitBreakerState proxy_id failure_count failure_window failure_threshold
        window_duration timeout_duration next_test_time last_state_change record_failure record_success
        should_attempt_request RetryAttempt RetryOutcome request_id attempt_number timestamp outcome
        status_code delay_before latency error_message RetryMetrics current_attempts hourly_aggregates
        circuit_breaker_events circuit_breaker_events_count retention_hours max_current_attempts
        record_attempt record_circuit_breaker_event aggregate_hourly get_summary CircuitBreakerEvent
        from_state to_state HourlyAggregate hour total_requests total_retries success_by_attempt
        failure_by_reason avg_latency RetryPolicyRequest CircuitBreakerResetRequest RetryPolicyResponse
        CircuitBreakerResponse RetryMetricsResponse TimeSeriesResponse""",
}

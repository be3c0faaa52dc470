/**
 * Penstock
 * 3.0.0
 * DO NOT MODIFY - This file has been generated using oazapfts.
 * See https://www.npmjs.com/package/oazapfts
 */
import * as Oazapfts from "@oazapfts/runtime";
import * as QS from "@oazapfts/runtime/query";
export const defaults: Oazapfts.Defaults<Oazapfts.CustomHeaders> = {
    headers: {},
    baseUrl: "/"
};
const oazapfts = Oazapfts.runtime(defaults);
export const servers = {
    theAddressThatServedThisDocument: "/"
};
export type Watermark = {
    surfaceId: string;
    /** By kind of request: everything that was accepted before this time is stored, dead-lettered or discarded, and its receipt is final. */
    settledBefore: {
        traces: string;
        logs: string;
        metrics: string;
        sessions: string;
        replay: string;
        "source-maps": string;
        completions: string;
        "build-reports": string;
    };
    /** By queue: no request of the surface that is unfinished there was accepted longer ago than this. 0 if there is none. */
    oldestAgeSeconds: {
        traces: number;
        logs: number;
        metrics: number;
        sessions: number;
        replay: number;
        "replay-chunks": number;
        "source-maps": number;
        completions: number;
        "build-reports": number;
        exceptions: number;
        "span-stats": number;
        symbolication: number;
        receipts: number;
        "dead-letters": number;
        "dead-letter-index": number;
    };
};
export type NextCursor = string | null;
export type PipelineQueue = {
    queue: "traces" | "logs" | "metrics" | "sessions" | "replay" | "replay-chunks" | "source-maps" | "completions" | "build-reports" | "exceptions" | "span-stats" | "symbolication" | "receipts" | "dead-letters" | "dead-letter-index";
    /** Estimated work of the unfinished requests in the queue, in decoded bytes. */
    workBytes: number;
    /** No request that is unfinished in the queue was accepted longer ago than this. 0 if there is none. */
    oldestAgeSeconds: number;
    /** Kind of the requests that edges put into the queue. Absent for queues that only workers write to. */
    kind?: "traces" | "logs" | "metrics" | "sessions" | "replay" | "source-maps" | "completions" | "build-reports";
    /** Accepted requests of the kind that workers have not processed yet, in whatever queue they are. Null if they cannot be counted now. */
    requests?: number | null;
    /** Every request of the kind that was accepted before this time is stored, dead-lettered or discarded, and its receipt is final. */
    settledBefore?: string;
};
export type PipelineRate = {
    /** The kind of request, such as `traces` or `replay`. */
    kind: string;
    /** Requests that workers have processed, by step of their arrival. */
    requests: number[];
    /** Their records that were stored. */
    records: number[];
    /** Their bytes as they were sent. */
    bytes: number[];
    /** Those that became dead letters. */
    deadLettered: number[];
};
export type Pipeline = {
    /** When the queues were read, by the clock that accepts requests. */
    readAt: string;
    /** Whether the workspace has more than 1,000 surfaces. Then `queues` has the work and the requests of the newest ones. */
    isPartial: boolean;
    /** All queues, also those in which nothing waits. */
    queues: PipelineQueue[];
    /** Null while stored data cannot be read. */
    history: {
        /** Start of the first step. */
        "from": string;
        /** End of the last step. */
        to: string;
        stepSeconds: number;
        /** Kinds without a request are left out. */
        rates: PipelineRate[];
        /** Requests that were refused in their response, by kind and status, in whole hours. */
        refused: {
            kind: string;
            status: number;
            requests: number;
        }[];
        /** Requests that could not be stored, or not with all their records, most first. */
        letters: {
            reason: string;
            /** Dead letters that are not stored, also those that are being replayed. */
            dead: number;
            /** Dead letters that a replay has stored. */
            replayed: number;
            /** Requests over the bound of dead letters, of which nothing is kept. */
            discarded: number;
        }[];
        /** Dead letters that were purged, in whole hours. */
        purgedLetters: number;
    } | null;
    /** Why there is no history, and why requests that wait are not counted. Else null. */
    unavailable: string | null;
};
export type Release = {
    slug: string;
    /** The registered version: the `service.version` of its telemetry. */
    version: string;
    surfaceId: string;
    commit: string | null;
    createdAt: string;
    /** Number of maps in its manifest. */
    sourceMapCount: number;
    /** Number of source files, as stated by the completion. */
    sourceFileCount: number;
    /** Null until the first completion. */
    completedAt: string | null;
};
export type ReleasesPage = {
    releases: Release[];
    nextCursor: NextCursor;
};
export type JsonValue = any;
export type SymbolicationShare = {
    resolvedFrames: number;
    totalFrames: number;
    /** Null while there are no frames. */
    share: number | null;
};
export type ReleaseBuildResult = "ok" | "api_key_wrong_prefix" | "api_key_unreadable" | "api_key_rejected" | "api_key_scope_mismatch" | "pipeline_failed" | "no_source_maps" | "client_maps_unmapped";
export type StoredBuildReport = {
    receivedAt: string;
    result?: ReleaseBuildResult;
    discover?: number;
    createRelease?: number;
    upload?: number;
    cleanup?: number;
    total?: number;
    fileCount?: number;
    totalBytes?: number;
    preflight?: number;
};
export type ManifestFile = {
    path: string;
    hash: string;
    debugId: string;
    chunkUrl: string;
    /** Size of the stored map in bytes. */
    size: number;
    /** Whether the bytes match `hash`. False if the form of `hash` is unknown. */
    verified: boolean;
};
export type ReleaseDetails = {
    slug: string;
    /** The registered version: the `service.version` of its telemetry. */
    version: string;
    surfaceId: string;
    commit: string | null;
    createdAt: string;
    /** Number of maps in its manifest. */
    sourceMapCount: number;
    /** Number of source files, as stated by the completion. */
    sourceFileCount: number;
    /** Null until the first completion. */
    completedAt: string | null;
    /** Free-form data of the build. */
    metadata: {
        [key: string]: JsonValue;
    } | null;
    symbolication: SymbolicationShare;
    /** Newest first, at most 10. */
    buildReports: StoredBuildReport[];
    /** Null until the first completion. */
    manifest: {
        completedAt: string;
        files: ManifestFile[];
        nextCursor: NextCursor;
    } | null;
};
export type ListedSession = {
    id: string;
    /** Surfaces that have sent identities, heartbeats or replay chunks of the session. */
    surfaceIds: string[];
    /** When the first of its spans and recorded events happened, or its first request arrived. */
    firstSeenAt: string;
    lastSeenAt: string;
    /** Present if nothing of the session states its time: both times are those of arrivals. */
    timesOfArrival?: true;
    /** The user of the identity that was received last. */
    identity: {
        /** The first 1000 characters. */
        identifier: string;
        /** The first 1000 characters. */
        name?: string;
        email?: string;
    } | null;
    traceCount: number;
    /** Number of spans with the status ERROR, as received. */
    errorCount: number;
    findingCount: number;
    replayChunkCount: number;
};
export type SessionsPage = {
    sessions: ListedSession[];
    nextCursor: NextCursor;
};
export type SessionIdentity = {
    identifier: string;
    source: {
        "type": string;
        name: string;
    };
    deviceId?: string;
    visitorId?: string;
    fpHash?: string;
    avatar?: string;
    email?: string;
    name?: string;
    country?: string;
    traits: {
        [key: string]: any;
    };
    attachedAt: string;
};
export type SessionDevice = {
    deviceId?: string;
    visitorId?: string;
    fpHash?: string;
    firstHeartbeatAt: string;
    lastHeartbeatAt: string;
    heartbeatCount: number;
};
export type SessionTrace = {
    id: string;
    traceId: string;
    startedAt: string;
    endedAt: string;
    /** Number of spans as received: a span that was sent twice counts twice. */
    spanCount: number;
    errorCount: number;
};
export type SessionFinding = {
    id: string;
    /** Number of occurrences in this session. */
    occurrenceCount: number;
    lastSeenAt: string;
};
export type SessionPage = {
    id: string;
    /** Number of its requests that are stored or have a dead letter. */
    receivedCount: number;
    /** Number of requests that are not, although the page has sent a later one. Some may still be on their way. */
    missingCount: number;
    /** The first of their numbers. */
    missing: number[];
};
export type Session = {
    id: string;
    /** The identity received last. */
    identity: {
        identifier: string;
        source: {
            "type": string;
            name: string;
        };
        deviceId?: string;
        visitorId?: string;
        fpHash?: string;
        avatar?: string;
        email?: string;
        name?: string;
        country?: string;
        traits: {
            [key: string]: any;
        };
        attachedAt: string;
    } | null;
    identities: SessionIdentity[];
    identityCount: number;
    devices: SessionDevice[];
    deviceCount: number;
    /** When the first of its spans and recorded events happened, or its first request arrived. */
    firstSeenAt: string;
    lastSeenAt: string;
    /** Present if nothing of the session states its time: both times are those of arrivals. */
    timesOfArrival?: true;
    traces: SessionTrace[];
    traceCount: number;
    findings: SessionFinding[];
    findingCount: number;
    pages: SessionPage[];
    pageCount: number;
    replay: {
        chunkCount: number;
        windowCount: number;
        eventCount: number;
        storedBytes: number;
        decompressedBytes: number;
        /** By the clock of the recording browser. */
        firstEventAt: string;
        lastEventAt: string;
    } | null;
    /** Whether a list is shorter than its count. */
    truncated: boolean;
};
export type ReceivedCount = number;
export type TimelineSpan = {
    kind: "span";
    /** The start, by the clock of the sender. */
    at: string;
    receivedCount: ReceivedCount;
    surfaceId: string;
    traceId: string;
    spanId: string;
    parentSpanId?: string;
    /** The first 256 characters. */
    name: string;
    /** The first 256 characters. */
    serviceName: string;
    durationMs: number;
    status: "UNSET" | "OK" | "ERROR";
};
export type TimelineLog = {
    kind: "log";
    /** The time of the record, else of its observation, else of its arrival. */
    at: string;
    receivedCount: ReceivedCount;
    surfaceId: string;
    traceId?: string;
    spanId?: string;
    /** The first 256 characters. */
    serviceName: string;
    severityNumber: number;
    /** The first 256 characters. */
    severityText?: string;
    /** The first 256 characters. */
    eventName?: string;
    /** The first 1000 characters. */
    body: string;
};
export type TimelineFinding = {
    kind: "finding";
    /** When the exception occurred, by the clock of the sender. */
    at: string;
    receivedCount: ReceivedCount;
    surfaceId: string;
    traceId?: string;
    spanId?: string;
    findingId: string;
    /** The first 256 characters. */
    serviceName: string;
    /** The first 256 characters. */
    "type": string;
    /** The first 1000 characters. */
    message: string;
};
export type TimelineHeartbeat = {
    kind: "heartbeat";
    /** When it was received. */
    at: string;
    receivedCount: ReceivedCount;
    surfaceId: string;
    deviceId?: string;
    visitorId?: string;
};
export type TimelineIdentity = {
    kind: "identity";
    /** When it was received. */
    at: string;
    receivedCount: ReceivedCount;
    surfaceId: string;
    /** The first 1000 characters. */
    identifier: string;
    source: {
        /** The first 256 characters. */
        "type": string;
        /** The first 256 characters. */
        name: string;
    };
    /** The first 1000 characters. */
    name?: string;
    email?: string;
    deviceId?: string;
    visitorId?: string;
};
export type TimelineReplayChunk = {
    kind: "replay";
    /** The first event of the chunk, by the clock of the recording browser. */
    at: string;
    receivedCount: ReceivedCount;
    surfaceId: string;
    chunkId: string;
    /** The first 256 characters. */
    windowId: string;
    /** The first 256 characters. */
    segmentId: string;
    /** The last event. */
    endsAt: string;
    eventCount: number;
    hasFullSnapshot: boolean;
};
export type TimelineEntry = ({
    kind: "span";
} & TimelineSpan) | ({
    kind: "log";
} & TimelineLog) | ({
    kind: "finding";
} & TimelineFinding) | ({
    kind: "heartbeat";
} & TimelineHeartbeat) | ({
    kind: "identity";
} & TimelineIdentity) | ({
    kind: "replay";
} & TimelineReplayChunk);
export type TimelinePage = {
    entries: TimelineEntry[];
    nextCursor: NextCursor;
};
export type ReplayChunk = {
    id: string;
    objectKey: string;
    windowId: string;
    segmentId: string;
    /** As stated by the upload, in ms since 1970. */
    firstTs: number;
    lastTs: number;
    /** As stated by its events. */
    firstEventAt: string;
    lastEventAt: string;
    eventCount: number;
    hasFullSnapshot: boolean;
    /** Number of events caused by a person. */
    activityCount: number;
    /** Size after gzip. */
    storedBytes: number;
    decompressedBytes: number;
    receivedAt: string;
};
export type ReplayGap = {
    windowId: string;
    /** The last segment before the gap. */
    after: number;
    /** The first segment after the gap. */
    before: number;
    missingCount: number;
};
export type ReplayPage = {
    chunks: ReplayChunk[];
    nextCursor: NextCursor;
    /** The gaps of the whole session, on every page. */
    gaps: ReplayGap[];
    /** Windows whose first chunk has no full snapshot. They cannot be played from their beginning. */
    missingFullSnapshots: string[];
    /** Whether there are more gaps or windows than the 100 listed of each. */
    truncated: boolean;
};
export type FindingStatus = "open" | "resolved" | "ignored" | "regressed";
export type Finding = {
    id: string;
    surfaceId: string;
    serviceName: string;
    /** The value of the latest occurrence. */
    "type": string;
    /** The value of the latest occurrence. */
    message: string;
    /** The title that a rule gives it. */
    title?: string;
    /** The innermost frame of the application in the latest occurrence, if there is one. */
    topFrame?: {
        /** Empty outside of functions. */
        "function": string;
        file: string;
        line: number;
    };
    firstSeenAt: string;
    lastSeenAt: string;
    occurrenceCount: number;
    status: FindingStatus;
    /** When a member chose a status, if one did. */
    statusChangedAt?: string;
    /** The user who works on it. */
    assignee?: string;
    /** When it is open again, if it is ignored for a time. */
    ignoredUntil?: string;
    /** After how many further occurrences it is open again, if it is ignored until then. */
    occurrencesUntilOpen?: number;
    /** The versions in which it occurred only after it was resolved, if it is regressed. Empty for those without one. */
    regressedIn?: string[];
    /** The finding that it was merged into and then split from. */
    splitFrom?: string;
};
export type FindingsPage = {
    findings: Finding[];
    nextCursor: NextCursor;
    /** With `occurrences=true`: number of occurrences by time. `counts[i]` are those of `findings[i]`, and `counts[i][j]` is that of the bucket which begins `j * bucketSeconds` after `from`. The time is that of the request, else the last 24 hours. */
    occurrences?: {
        "from": string;
        to: string;
        bucketSeconds: number;
        counts: number[][];
        /** With `times`: by which time they are counted. `received` also if there are too many for the other. */
        times?: "received" | "occurred";
    };
};
export type FindingFrame = {
    /** Empty outside of functions. */
    "function": string;
    file: string;
    line: number;
    column: number;
    /** The line of the original source, at most 200 characters, if the map contains the source. */
    sourceLine?: string;
    /** That line with five before and after it, at most 200 characters each, without their common indentation. Only frames of the application have them, the innermost first, while those of the stack have at most 32,768 characters. */
    sourceLines?: {
        /** The number of the first line. */
        "from": number;
        lines: string[];
    };
    /** Whether it is code of the application, not of the runtime, a dependency or an SDK. */
    inApp: boolean;
    /** The line in the repository that the release names, if it does. */
    sourceUrl?: string;
    /** Whether the position is the original one. If not, it is as it was sent. */
    resolved: boolean;
    /** Why the frame of a script was as it was sent when its stack was resolved last: the exception names no version (`no_version`), no release of its version had completed source maps (`no_release`), or none for this file (`no_map`), the map is missing or cannot be parsed within its limits (`unusable_map`), or has nothing at this position (`no_position`). Not stated for code of the runtime. */
    unresolvedReason?: "no_version" | "no_release" | "no_map" | "unusable_map" | "no_position";
    /** The position as it was sent. */
    generated: {
        /** Empty outside of functions. */
        "function": string;
        file: string;
        line: number;
        column: number;
    };
};
export type FindingStack = {
    /** As it was sent. */
    text: string;
    /** Such as `java`. Absent if its format is unknown. */
    language?: string;
    /** The exception that was reported, then those behind it. At most 16. */
    exceptions: {
        /** To the exception before it. Absent for the first one, which was reported. */
        relation?: "cause" | "context" | "suppressed" | "member";
        "type": string;
        /** At most 1000 characters. */
        message: string;
        /** Innermost first, at most 100. */
        frames: {
            /** Empty outside of functions. */
            "function": string;
            file: string;
            line: number;
            column: number;
            /** Whether it is code of the application, not of the runtime, a dependency or an SDK. */
            inApp: boolean;
        }[];
    }[];
};
export type FindingGrouping = {
    /** The fingerprint of the client, a rule, the frames of the stack, the message, the title of a failed span, or the first lines of a stack in an unknown format. */
    by: "client" | "rule" | "frames" | "message" | "title" | "lines";
    /** The name of the rule. */
    rule?: string;
    /** That of the client or of the rule. */
    fingerprint?: string;
    /** The exceptions that count, with their frames that do, innermost first. */
    exceptions?: {
        "type": string;
        frames: string[];
    }[];
    /** The type or title, if there are no frames. */
    "type"?: string;
    lines?: string[];
    /** The message, if it counts, without ids, numbers and quoted texts. */
    message?: string;
};
export type OccurrenceCounts = {
    "from": string;
    to: string;
    bucketSeconds: number;
    counts: number[];
    /** With `times`: by which time they are counted. `received` also if there are too many for the other. */
    times?: "received" | "occurred";
};
export type Occurrence = {
    /** By the clock of the sender. */
    occurredAt: string;
    receivedAt: string;
    traceId?: string;
    spanId?: string;
    sessionId?: string;
    serviceVersion?: string;
    /** The first 500 characters. */
    message: string;
};
export type FindingPlaces = {
    surfaceIds: string[];
    serviceNames: string[];
    /** At most 20. */
    serviceVersions: string[];
    /** Within about 1 %; exact for small counts. */
    approximateTraceCount: number;
    approximateSessionCount: number;
};
export type FindingDetails = {
    id: string;
    surfaceId: string;
    serviceName: string;
    /** The value of the latest occurrence. */
    "type": string;
    /** The value of the latest occurrence. */
    message: string;
    /** The title that a rule gives it. */
    title?: string;
    /** The innermost frame of the application in the latest occurrence, if there is one. */
    topFrame?: {
        /** Empty outside of functions. */
        "function": string;
        file: string;
        line: number;
    };
    firstSeenAt: string;
    lastSeenAt: string;
    occurrenceCount: number;
    status: FindingStatus;
    /** When a member chose a status, if one did. */
    statusChangedAt?: string;
    /** The user who works on it. */
    assignee?: string;
    /** When it is open again, if it is ignored for a time. */
    ignoredUntil?: string;
    /** After how many further occurrences it is open again, if it is ignored until then. */
    occurrencesUntilOpen?: number;
    /** The versions in which it occurred only after it was resolved, if it is regressed. Empty for those without one. */
    regressedIn?: string[];
    /** The finding that it was merged into and then split from. */
    splitFrom?: string;
    /** Innermost first: those that source maps resolved, else those of `stack`. Empty if no stack was sent, or its format is unknown. */
    frames: FindingFrame[];
    stack?: FindingStack;
    /** The findings that are merged into it, if there are any. Their ids lead to it. */
    mergedFindingIds?: string[];
    grouping: FindingGrouping;
    /** When its first occurrence arrived, by the service. */
    firstReceivedAt: string;
    lastReceivedAt: string;
    occurrences: OccurrenceCounts;
    /** The occurrences received last, latest first. */
    lastOccurrences: Occurrence[];
    seenIn: FindingPlaces;
};
export type ChangeFindingRequest = {
    status?: "open" | "resolved" | "ignored";
    /** With the status `ignored`: when the finding is open again. */
    ignoreUntil?: string;
    /** With the status `ignored`: after how many further occurrences the finding is open again. */
    ignoreOccurrences?: number;
    /** The member who works on the finding. Null removes it. */
    assignee?: string | null;
};
export type CommentFindingRequest = {
    text: string;
};
export type Actor = {
    userId: string;
    /** Null if the user did not use an API key. */
    apiKeyId: string | null;
} | null;
export type FindingActivityEntry = {
    id: string;
    createdAt: string;
    by: Actor;
    /** Present if the link of a message did it: the name of the receiver of the message. */
    via?: {
        receiver: string;
    };
    action: "acknowledged" | "resolved" | "ignored" | "reopened" | "assigned" | "unassigned" | "commented" | "merged" | "split" | "split_off";
    /** The user to whom it was assigned. */
    assignee?: string;
    /** Until when it is ignored. */
    until?: string;
    /** After how many occurrences it is open again. */
    occurrences?: number;
    /** The comment. */
    text?: string;
    /** The finding that was merged into it (`merged`), split off (`split_off`), or that it was split from (`split`). */
    findingId?: string;
};
export type FindingActivityPage = {
    activity: FindingActivityEntry[];
    nextCursor: NextCursor;
};
export type MergeFindingsRequest = {
    findingIds: string[];
};
export type SplitFindingRequest = {
    /** A finding that is merged into it. */
    findingId: string;
};
export type FindingTrace = {
    id: string;
    /** The same as `id`. */
    traceId: string;
    /** Number of occurrences in this trace. */
    occurrenceCount: number;
    lastSeenAt: string;
};
export type FindingTracesPage = {
    traces: FindingTrace[];
    nextCursor: NextCursor;
};
export type ListedOccurrence = {
    /** By the clock of the sender. */
    occurredAt: string;
    receivedAt: string;
    traceId?: string;
    spanId?: string;
    sessionId?: string;
    serviceVersion?: string;
    /** The first 500 characters. */
    message: string;
    surfaceId: string;
    /** The release of the version, if it is registered. */
    releaseSlug?: string;
    /** Browser or client, such as `Chrome 131`. */
    browser?: string;
    /** Operating system, such as `iOS 17`. */
    system?: string;
    /** Route, else path with ids replaced. */
    route?: string;
    environment?: string;
    host?: string;
    /** The `identifier` of the session, of the identity received last. Only with `org:sessions:read`. */
    person?: string;
    /** Its moment in the recording of the session, if there is one of that time. */
    recordedAt?: string;
};
export type OccurrencesPage = {
    occurrences: ListedOccurrence[];
    nextCursor: NextCursor;
};
export type ValueCounts = {
    /** Most frequent first. */
    values: {
        value: string;
        /** Occurrences with this value. */
        count: number;
        /** Share of all examined occurrences. */
        share: number;
    }[];
    /** Number of different values. */
    distinctCount: number;
    /** Occurrences with a value that is not listed. */
    otherCount: number;
    /** Occurrences without a value. */
    absentCount: number;
};
export type FindingValues = {
    /** Occurrences in the time. */
    occurrenceCount: number;
    /** Occurrences that all else is of: all in the time, or about the newest 100,000. */
    examinedCount: number;
    people: {
        /** People with an `identifier`. */
        identifiedCount: number;
        /** Most occurrences first. Only with `org:sessions:read`. */
        top?: {
            identifier: string;
            sessionCount: number;
            occurrenceCount: number;
        }[];
    };
    sessionCount: number;
    /** Sessions without an identity. */
    anonymousSessionCount: number;
    versions: ValueCounts;
    browsers: ValueCounts;
    systems: ValueCounts;
    routes: ValueCounts;
    environments: ValueCounts;
    hosts: ValueCounts;
};
export type FoundTrace = {
    traceId: string;
    /** The first root span. If no root span is retained, the first span. */
    firstSpan: {
        spanId: string;
        /** Present if no root span is retained. */
        parentSpanId?: string;
        name: string;
        serviceName: string;
        /** Its `http.route`. */
        httpRoute?: string;
        /** Its `http.response.status_code`. */
        httpStatusCode?: number;
    };
    startedAtUnixNano: string;
    endedAtUnixNano: string;
    /** From the first start to the last end. */
    wallDurationMs: number;
    spanCount: number;
    errorCount: number;
    /** The first 20 names of services, in alphabetical order. */
    services: string[];
    serviceCount: number;
};
export type Suggestions = {
    suggestions: string[];
};
export type MissingCause = "in_flight" | "dead_lettered" | "refused" | "expired" | "erased" | "dropped" | "cut" | "not_received_from_other_service" | "not_received_from_this_service" | "unknown";
export type TraceLoss = {
    cause: "dead_lettered" | "refused" | "expired" | "erased" | "dropped";
    surfaceId: string;
    /** Whether the surface has sent spans of the trace, and the loss is from at most 60 seconds before or after they arrived. */
    isNear: boolean;
    /** The rule that has dropped the spans. */
    rule?: string;
    /** Requests that were dead-lettered or refused, or spans that expired, were erased or dropped. */
    count: number;
    /** Refused requests and deleted spans are counted by whole hours. */
    receivedFrom: string;
    receivedTo: string;
};
export type Completeness = {
    /** complete: no parent is missing, everything that was accepted before `settledBefore` is included, and no request was lost at the time of the trace. no_gaps: no parent is missing, and `reasons` say why it is not proved that nothing else is. incomplete: parents are missing, or the trace was cut. */
    state: "complete" | "no_gaps" | "incomplete";
    /** Everything that was accepted before this time is included. Absent if it is not known. */
    settledBefore?: string;
    /** Why the trace is not complete. Empty if it is. */
    reasons: MissingCause[];
    /** Losses at its time, the near ones first, then the largest. Empty if it is complete. */
    losses: TraceLoss[];
};
export type MissingParent = {
    spanId: string;
    /** Index of the first span that names it. */
    firstChild: number;
    childCount: number;
    /** Whether the parent is of another service, as its first child states. Absent if it does not. */
    isRemote?: boolean;
    cause: MissingCause;
};
export type TraceColumns = {
    traceId: string;
    spanCount: number;
    /** Number of spans without a parent. */
    rootCount: number;
    /** Number of spans whose parent is not retained in the trace. */
    danglingParentCount: number;
    startedAtUnixNano: string;
    endedAtUnixNano: string;
    /** From the first start to the last end. */
    wallDurationMs: number;
    /** Whether more than 1,000,000 stored spans made the columns incomplete. */
    truncated: boolean;
    /** The distinct names of spans, cut after 256 characters. */
    names: string[];
    /** The distinct names of services, cut after 256 characters. */
    services: string[];
    /** Spans that were received more than once, and how often. */
    repeated: {
        spans: number[];
        counts: number[];
    };
    completeness: Completeness;
    /** Parents that are not retained in the trace, the first 1,000. */
    missingParents: MissingParent[];
    spans: {
        /** The span ids one after the other, 16 hex digits each. */
        ids: string;
        /** Nanoseconds from the start of the span before. 0 for the first, which starts at `startedAtUnixNano`. */
        startDeltaNanos: number[];
        /** Negative for a span that ends before it starts. */
        durationNanos: number[];
        /** Index of the parent. -1 for a root, -2 if the parent is not retained in the trace. */
        parents: number[];
        /** Index in `names`. -1 if the distinct names have more than 4 MiB. */
        names: number[];
        /** Index in `services`. -1 if these have more than 1 MiB. */
        services: number[];
        /** SpanKind of OTLP. */
        kinds: number[];
        /** StatusCode of OTLP. */
        statuses: number[];
        /** Flags of OTLP. */
        flags: number[];
    };
};
export type Attribute = {
    key: string;
    "type": "empty" | "string" | "bool" | "int" | "double" | "array" | "kvlist" | "bytes";
    /** The value as text: lists and maps as JSON, bytes as base64. */
    value: string;
};
export type Dropped = number;
export type JsonObject = {
    [key: string]: JsonValue;
};
export type SpanDetails = {
    spanId: string;
    /** Absent for a root span. */
    parentSpanId?: string;
    name: string;
    kind: "UNSPECIFIED" | "INTERNAL" | "SERVER" | "CLIENT" | "PRODUCER" | "CONSUMER";
    serviceName: string;
    startTimeUnixNano: string;
    endTimeUnixNano: string;
    /** From start to end. */
    durationMs: number;
    statusCode: "UNSET" | "OK" | "ERROR";
    statusMessage?: string;
    sessionId?: string;
    httpRoute?: string;
    httpStatusCode?: number;
    /** How many times the span was received. */
    occurrenceCount: number;
    /** The start, with nanoseconds. */
    timestamp: string;
    surfaceId: string;
    receivedAt: string;
    traceState: string;
    attributes: Attribute[];
    droppedAttributesCount: Dropped;
    /** Flags of OTLP. */
    flags: number;
    resource: {
        attributes: JsonObject;
        droppedAttributesCount: Dropped;
        schemaUrl: string;
    };
    scope: {
        name: string;
        version: string;
        attributes: JsonObject;
        droppedAttributesCount: Dropped;
        schemaUrl: string;
    };
    events: {
        timeUnixNano: string;
        name: string;
        attributes: Attribute[];
        droppedAttributesCount: Dropped;
    }[];
    droppedEventsCount: Dropped;
    links: {
        traceId: string;
        spanId: string;
        traceState: string;
        /** Flags of OTLP. */
        flags: number;
        attributes: Attribute[];
        droppedAttributesCount: Dropped;
    }[];
    droppedLinksCount: Dropped;
    /** The findings of its exceptions, at most eight. */
    findingIds: string[];
};
export type Durations = {
    average: number;
    p50: number;
    p95: number;
    p99: number;
} | null;
export type SpanRates = {
    spans: number;
    /** Those with the status `ERROR`. */
    errors: number;
    durationMs: Durations;
};
export type LastRelease = {
    version: string;
    at: string;
    before: SpanRates;
} | null;
export type ServiceSteps = {
    spans: number[];
    errors: number[];
    p95Ms: (number | null)[];
};
export type Service = {
    /** The `service.name`. */
    name: string;
    /** The spans that count: those of servers and consumers, or all spans of a service without such spans. */
    counts: "entries" | "all";
    spans: number;
    /** Those with the status `ERROR`. */
    errors: number;
    durationMs: Durations;
    /** The same of the range a day earlier. */
    dayBefore: SpanRates;
    lastRelease: LastRelease;
    steps: ServiceSteps;
};
export type ServicesPage = {
    "from": string;
    to: string;
    /** Length of a step. Steps begin at multiples of it since 1970. */
    stepSeconds: number;
    services: Service[];
    nextCursor: NextCursor;
};
export type ServiceOfMap = {
    /** The `service.name`. */
    name: string;
    /** The spans that count: those of servers and consumers, or all spans of a service without such spans. */
    counts: "entries" | "all";
    spans: number;
    /** Those with the status `ERROR`. */
    errors: number;
    durationMs: Durations;
};
export type ServiceEdge = {
    /** The calling service. Null if the span of the caller is not stored. */
    caller: string | null;
    /** The called service. Null if it has sent no span. */
    callee: string | null;
    kind: "request" | "message" | "queue" | "database" | "other";
    /** The thing that was called, by the attributes of the spans: a database, a queue, a host. Null if they name none. */
    peer: {
        system: string;
        name: string;
    } | null;
    calls: number;
    /** Calls of which either side has the status `ERROR`. */
    errors: number;
    durationMs: Durations;
    callerDurationMs: Durations;
    slowest: {
        traceId: string;
        durationMs: number;
    };
};
export type ServiceMap = {
    "from": string;
    to: string;
    /** Length of a step. Steps begin at multiples of it since 1970. */
    stepSeconds: number;
    /** Services with spans in the range, those with most first. */
    services: ServiceOfMap[];
    /** At most 1000, those first with most calls. */
    edges: ServiceEdge[];
    /** Whether there are more edges. */
    isCut: boolean;
};
export type SessionsOfVersion = {
    total: number;
    /** Sessions with an exception of this version. */
    errored: number;
    /** Sessions with an exception that was not handled (`exception.escaped`). */
    crashed: number;
};
export type PeopleOfVersion = {
    total: number;
    /** Identified people with an exception of this version. */
    errored: number;
    /** Identified people with an exception that was not handled (`exception.escaped`). */
    crashed: number;
};
export type FindingsOfVersion = {
    /** Findings whose first retained occurrence was in this version, in the range. */
    "new": number;
    /** Findings that are regressed because of this version. */
    regressed: number;
};
export type VersionHealth = {
    service: string;
    /** The `service.version`. Empty for spans without one. */
    version: string;
    /** Minute of its first span in the range. */
    firstAt: string | null;
    lastAt: string | null;
    spans: number;
    /** Spans with the status `ERROR`. */
    errors: number;
    sessions: SessionsOfVersion;
    people: PeopleOfVersion;
    findings: FindingsOfVersion;
};
export type Versions = {
    "from": string;
    to: string;
    /** At most 200, the latest first. */
    versions: VersionHealth[];
    /** Whether there are more versions. */
    isCut: boolean;
};
export type ServiceOperation = {
    /** Name of the spans, or their route if the name does not contain it. */
    name: string;
    kind: "unspecified" | "internal" | "server" | "client" | "producer" | "consumer";
    spans: number;
    /** Those with the status `ERROR`. */
    errors: number;
    durationMs: Durations;
    slowest: {
        traceId: string;
        durationMs: number;
    };
};
export type ServiceVersion = {
    version: string;
    environment: string;
    /** Minute of the first of its spans in the range. */
    firstAt: string;
    lastAt: string;
    spans: number;
    /** Those with the status `ERROR`. */
    errors: number;
    durationMs: Durations;
};
export type ServiceDetails = {
    "from": string;
    to: string;
    /** Length of a step. Steps begin at multiples of it since 1970. */
    stepSeconds: number;
    /** The `service.name`. */
    name: string;
    /** The spans that count: those of servers and consumers, or all spans of a service without such spans. */
    counts: "entries" | "all";
    spans: number;
    /** Those with the status `ERROR`. */
    errors: number;
    durationMs: Durations;
    /** The same of the range a day earlier. */
    dayBefore: SpanRates;
    lastRelease: LastRelease;
    steps: ServiceSteps;
    /** At most 200, those first that took most time together. */
    operations: ServiceOperation[];
    /** At most 200, the one with the latest span first. */
    versions: ServiceVersion[];
};
export type LogRecord = {
    /** The time by which records are searched and ordered: `timeUnixNano`, else `observedTimeUnixNano`, else the arrival. */
    timestamp: string;
    /** When it happened, by the clock of the sender. 0 if that is unknown. */
    timeUnixNano: string;
    /** When it was observed. 0 if that is unknown. */
    observedTimeUnixNano: string;
    receivedAt: string;
    surfaceId: string;
    serviceName: string;
    serviceVersion: string;
    severity: "UNSPECIFIED" | "TRACE" | "DEBUG" | "INFO" | "WARN" | "ERROR" | "FATAL";
    severityNumber: number;
    severityText: string;
    /** The body as text: lists and maps as JSON, bytes as base64. */
    body: string;
    bodyType: "empty" | "string" | "bool" | "int" | "double" | "array" | "kvlist" | "bytes";
    eventName?: string;
    traceId?: string;
    spanId?: string;
    sessionId?: string;
    attributes: Attribute[];
    droppedAttributesCount: Dropped;
    /** Flags of OTLP. */
    flags: number;
    resource: {
        attributes: JsonObject;
        droppedAttributesCount: Dropped;
        schemaUrl: string;
    };
    scope: {
        name: string;
        version: string;
        attributes: JsonObject;
        droppedAttributesCount: Dropped;
        schemaUrl: string;
    };
    /** Present if the record has more than 4 MiB, and its body and attributes are shown in part. */
    isCut?: true;
};
export type LogsPage = {
    /** The start of the search, also if the request left it open. Absent if there is none. */
    "from"?: string;
    /** The end of the search, also if the request left it open. Absent if there is none. */
    to?: string;
    /** Newest first. */
    logs: LogRecord[];
    nextCursor: NextCursor;
};
export type LogHistogram = {
    /** The start of the search. Records before it are not counted. */
    "from": string;
    /** The end of the search. Records from it on are not counted. */
    to: string;
    /** The start of the first step, at or before `from`. */
    startsAt: string;
    stepSeconds: number;
    total: number;
    /** Number of records by severity and step: the step `i` begins `i * stepSeconds` after `startsAt`. */
    counts: {
        UNSPECIFIED: number[];
        TRACE: number[];
        DEBUG: number[];
        INFO: number[];
        WARN: number[];
        ERROR: number[];
        FATAL: number[];
    };
};
export type MetricKind = {
    "type": "gauge" | "sum" | "histogram" | "exponential_histogram" | "summary";
    /** Empty if none was sent. Cut after 63 characters. */
    unit: string;
    /** For sums and histograms: whether a point counts since the one before, or since a start. */
    temporality?: "unspecified" | "delta" | "cumulative";
    /** For sums: whether they only grow. */
    isMonotonic?: boolean;
};
export type Metric = {
    name: string;
    /** Cut after 500 characters. */
    description: string;
    /** At most 10, the one of the newest point first. */
    kinds: MetricKind[];
    /** Keys of the attributes of its points, at most 100. Each metric also has `service.name` and `surface.id`. */
    labels: string[];
    /** By the clock of the sender. */
    lastPointAt: string;
};
export type MetricsPage = {
    metrics: Metric[];
    nextCursor: NextCursor;
};
export type MetricSeries = {
    name: string;
    kind: MetricKind;
    /** Other kinds that the metric has in the range. `type` and `unit` choose one of them. */
    otherKinds: MetricKind[];
    aggregation: "average" | "last" | "max" | "min" | "quantile" | "rate" | "sum";
    quantile?: number;
    /** Start of the first step. */
    "from": string;
    /** End of the last step. */
    to: string;
    stepSeconds: number;
    /** How many series there are. */
    seriesCount: number;
    /** Whether `series` is incomplete. */
    truncated: boolean;
    /** The first 100 in the order of their labels. */
    series: {
        /** The labels of `groupBy` that the points have. */
        labels: {
            [key: string]: string;
        };
        /** With `aggregation=quantile` of a histogram with bounds: those of its buckets. Points with other bounds are another series. */
        bounds?: number[];
        /** A value for each step, the first at `from`. null if nothing is known about the step. */
        values: (number | null)[];
    }[];
};
export type DeadLetter = {
    id: string;
    state: "dead" | "replaying" | "replayed";
    /** The queue that refused the request. */
    queue: "traces" | "logs" | "metrics" | "sessions" | "replay" | "replay-chunks" | "source-maps" | "completions" | "build-reports" | "exceptions" | "span-stats" | "symbolication" | "receipts" | "dead-letters" | "dead-letter-index";
    surfaceId: string;
    /** Why it was refused: a name, such as `refused_by_clickhouse`. */
    reason: string;
    /** When the request arrived. */
    receivedAt: string;
    /** When it was refused, or stored, last. */
    settledAt: string;
    /** The size of the body as it was sent. */
    bodyBytes: number;
    /** How often the letter was replayed. */
    replays: number;
};
export type DeadLetterDetails = {
    id: string;
    state: "dead" | "replaying" | "replayed";
    /** The queue that refused the request. */
    queue: "traces" | "logs" | "metrics" | "sessions" | "replay" | "replay-chunks" | "source-maps" | "completions" | "build-reports" | "exceptions" | "span-stats" | "symbolication" | "receipts" | "dead-letters" | "dead-letter-index";
    surfaceId: string;
    /** Why it was refused: a name, such as `refused_by_clickhouse`. */
    reason: string;
    /** When the request arrived. */
    receivedAt: string;
    /** When it was refused, or stored, last. */
    settledAt: string;
    /** The size of the body as it was sent. */
    bodyBytes: number;
    /** How often the letter was replayed. */
    replays: number;
    /** Details of the reason. */
    detail?: string;
    /** Absent if the bytes are gone. */
    contentType?: string;
    /** Absent if the bytes are gone. */
    contentEncoding?: string;
    /** Whether a replay can store what is left. */
    isReplayable: boolean;
    /** Tables that have the rows of the request already. */
    storedTables: string[];
    /** Records of the request that are stored. */
    storedRecords: number;
    /** Records of the request that are not stored, by reason. */
    rejected: {
        reason: string;
        count: number;
        /** Positions of the first 1,000 of them. */
        indexes: number[];
    }[];
    /** Every attempt to store the request, the first one as it was sent. */
    attempts: {
        /** Absent for the request as it was sent. */
        replayedAt?: string;
        outcome: "dead" | "stored" | "pending";
        settledAt?: string;
        reason?: string;
    }[];
};
export type Surface = {
    id: string;
    name: string;
    createdAt: string;
};
export type SurfacesPage = {
    surfaces: Surface[];
    nextCursor: NextCursor;
};
export type CreateSurfaceRequest = {
    name: string;
};
export type Done = {
    ok: true;
};
export type KeyUse = {
    lastUsedAt: string | null;
    requestsToday: number;
};
export type ShownKeyQuotas = {
    /** Requests a second. */
    requestsPerSecond?: number;
    /** Bytes of bodies a second, as sent. */
    bytesPerSecond?: number;
    /** Bytes of bodies a day (UTC), as sent. */
    bytesPerDay?: number;
};
export type SurfaceKey = {
    id: string;
    kind: "public" | "secret";
    name: string;
    publicKey: string | null;
    /** The prefix of its kind, and at most 3 further characters. */
    prefix: string;
    scopes: string[];
    createdAt: string;
    /** Null for a key that does not expire. */
    expiresAt: string | null;
    /** Null for a key that is not revoked. */
    revokedAt: string | null;
    /** Null for a key that an operator created. */
    createdBy: {
        userId: string;
        /** Null if the user did not use an API key. */
        apiKeyId: string | null;
        /** A secret key works only while this is `active` or null. A public key stays. */
        apiKeyState: ("active" | "revoked" | "expired" | "suspended" | "removed" | null) | null;
    } | null;
    usage: KeyUse;
    quotas?: ShownKeyQuotas;
    allowedOrigins?: string[];
};
export type SurfaceKeysPage = {
    keys: SurfaceKey[];
    nextCursor: NextCursor;
};
export type KeyQuotas = {
    /** Requests a second. */
    requestsPerSecond?: number;
    /** Bytes of bodies a second, as sent. */
    bytesPerSecond?: number;
    /** Bytes of bodies a day (UTC), as sent. */
    bytesPerDay?: number;
};
export type CreateSurfaceKeyRequest = {
    kind: "public";
    name?: string;
    /** Seconds. Null means no expiry. */
    secondsUntilExpiration?: number | null;
    quotas?: KeyQuotas;
    /** Requests with another Origin are refused. Requests without one pass. */
    allowedOrigins?: string[];
} | {
    kind: "secret";
    name?: string;
    scopes: "release:write"[];
    /** Seconds. Null means no expiry. */
    secondsUntilExpiration?: number | null;
    quotas?: KeyQuotas;
};
export type NewSurfaceKey = {
    id: string;
    kind: "public" | "secret";
    name?: string;
    /** The text of the key, of either kind. */
    secret: string;
    /** Present for a secret key. */
    scopes?: "release:write"[];
    /** Null for a key that does not expire. */
    expiresAt: string | null;
    quotas?: ShownKeyQuotas;
    allowedOrigins?: string[];
};
export type UpdateSurfaceKeyRequest = {
    /** Null removes all quotas. */
    quotas?: {
        requestsPerSecond?: number | null;
        bytesPerSecond?: number | null;
        bytesPerDay?: number | null;
    } | null;
    /** Null allows every origin. */
    allowedOrigins?: string[] | null;
};
export type Permission = "org:workspace_auth:write" | "org:members:read" | "org:members:write" | "org:surfaces:read" | "org:surfaces:write" | "org:surfaces:delete" | "org:findings:read" | "org:findings:write" | "org:sessions:read" | "org:releases:read" | "org:telemetry:read" | "org:telemetry:admin";
export type WorkspaceKey = {
    id: string;
    name: string;
    /** `wk_` and at most 3 further characters. */
    prefix: string;
    scopes: Permission[];
    createdBy: Actor;
    createdAt: string;
    /** Null for a key that does not expire. */
    expiresAt: string | null;
    /** Null for a key that is not revoked. */
    revokedAt: string | null;
    usage: KeyUse;
};
export type WorkspaceKeysPage = {
    apiKeys: WorkspaceKey[];
    nextCursor: NextCursor;
};
export type GrantedPermission = "org:workspace_auth:write" | "org:members:read" | "org:members:write" | "org:surfaces:read" | "org:surfaces:write" | "org:surfaces:delete" | "org:findings:read" | "org:findings:write" | "org:sessions:read" | "org:releases:read" | "org:telemetry:read" | "org:telemetry:admin";
export type CreateWorkspaceKeyRequest = {
    /** A new UUID for every key; the same one when the request is repeated. The header `Idempotency-Key` does the same. */
    idempotencyKey?: string;
    name?: string;
    /** The permissions of the key. */
    scopes: GrantedPermission[];
    /** Seconds. Null means no expiry. */
    secondsUntilExpiration: number | null;
};
export type NewWorkspaceKey = {
    id: string;
    name: string;
    scopes: Permission[];
    createdAt: string;
    /** Null for a key that does not expire. */
    expiresAt: string | null;
    /** The value of the key. No other response contains it. */
    secret: string;
};
export type Member = {
    /** The user. */
    id: string;
    permissions: Permission[];
    name?: string;
    email?: string;
    /** Absent if an operator has added the member. */
    invitedAt?: string;
};
export type MembersPage = {
    members: Member[];
    nextCursor: NextCursor;
};
export type AddMemberRequest = {
    /** The identity: the claim `sub` of the tokens with which the user signs in. */
    userId: string;
    permissions: GrantedPermission[];
    /** Shown to members of this workspace only. */
    name?: string;
    /** Shown to members of this workspace only. */
    email?: string;
};
export type ChangeMemberRequest = {
    permissions: GrantedPermission[];
};
export type MemberRemoved = {
    ok: true;
    /** The keys that were passed on or revoked. Public keys stay. */
    keys: {
        kind: "api" | "secret";
        id: string;
        name?: string;
        /** Present for a secret key. */
        surfaceId?: string;
    }[];
};
export type Change = {
    id: string;
    createdAt: string;
    by: Actor;
    /** Purges of dead letters and deletions of releases are recorded before they begin. */
    action: "surface.created" | "surface.deleted" | "surface-key.created" | "surface-key.changed" | "surface-key.revoked" | "surface-key.passed" | "api-key.created" | "api-key.revoked" | "api-key.passed" | "member.added" | "member.changed" | "member.removed" | "release.deleted" | "retention.changed" | "finding-rules.changed" | "scrubbing.changed" | "dropping.changed" | "alerts.changed" | "dead-letters.purged" | "erasure.created";
    /** Id of the surface, key, user, release or erasure. Empty for a change of the workspace. */
    subject: string;
    /** The name of what was created. */
    name?: string;
    /** The permissions of the key or the member afterwards. */
    permissions?: string[];
};
export type ChangesPage = {
    changes: Change[];
    nextCursor: NextCursor;
};
export type DroppedRecords = {
    rule: string;
    count: number;
}[];
export type Usage = {
    day: string;
    surfaceId: string;
    /** The kind of request, such as `traces` or `replay`. */
    kind: string;
    /** Number of requests that workers have processed. */
    requests: number;
    /** Their bytes as they were sent. */
    bytes: number;
    /** Number of records that were stored. */
    records: number;
    /** Number of values that scrubbing replaced, by rule. */
    scrubbed: {
        rule: string;
        values: number;
    }[];
    dropped: DroppedRecords;
};
export type UsagePage = {
    usage: Usage[];
    nextCursor: NextCursor;
};
export type Retention = {
    retention: {
        /** The default of everything but releases, and its upper limit. */
        maxDays: number;
        kinds: {
            /** Spans. */
            traces: {
                days: number;
                isDefault: boolean;
            };
            /** Log records. */
            logs: {
                days: number;
                isDefault: boolean;
            };
            /** Data points of metrics. */
            metrics: {
                days: number;
                isDefault: boolean;
            };
            /** Exceptions, and the findings that they are grouped into. */
            findings: {
                days: number;
                isDefault: boolean;
            };
            /** Identities and heartbeats of sessions. */
            sessions: {
                days: number;
                isDefault: boolean;
            };
            /** Replay chunks. */
            replay: {
                days: number;
                isDefault: boolean;
            };
            /** Reports of builds. */
            "build-reports": {
                days: number;
                isDefault: boolean;
            };
            /** Dead letters. */
            "dead-letters": {
                days: number;
                isDefault: boolean;
            };
            /** Releases with their source maps, from the last completion or the registration on. Null: until deleted. */
            releases: {
                days: number | null;
                isDefault: boolean;
            };
        };
    };
};
export type AlertReceiver = {
    id: string;
    name: string;
    channel: "webhook" | "slack" | "teams" | "pagerduty" | "email";
    /** The part of its target that may be shown. */
    address: string;
    createdAt: string;
    /** False if messages have no links that change findings. */
    actions?: boolean;
    disabled?: {
        at: string;
        reason: string;
    };
    /** With which signatures of Ed25519 are verified (`whpk_…`). Such a webhook has no secret. */
    publicKey?: string;
    /** The secret of a webhook, in the response to the request that made it, and never again. */
    secret?: string;
};
export type KeptAlertRule = {
    /** Messages have it. Unique among the rules. */
    name: string;
    kinds: ("finding.created" | "finding.regressed" | "finding.unignored" | "finding.spiking" | "finding.spreading" | "finding.changed" | "finding.commented" | "metric.threshold" | "service.errors" | "service.latency" | "surface.silent" | "pipeline.dead_letters" | "pipeline.quota" | "pipeline.late")[];
    /** Names of receivers. All of them by default. */
    receivers?: string[];
    /** Ids of surfaces. */
    surfaces?: string[];
    /** Values of `service.name`. */
    services?: string[];
    /** Values of `deployment.environment.name`. */
    environments?: string[];
    /** Values of `service.version`, that of the latest occurrence. */
    releases?: string[];
    /** Types of exceptions, or titles of failed spans. */
    types?: string[];
    /** The least number of people whom the finding concerned. */
    minPeople?: number;
    /** For `finding.spiking`: the factor to the busiest five minutes in the same hour of the seven days before, and the least number of occurrences in five minutes. 5 and 20 by default. */
    spiking?: {
        times: number;
        atLeast: number;
    };
    /** For `finding.spreading`: it concerned at least this many people in this time. */
    spreading?: {
        people: number;
        minutes: number;
    };
    /** For `metric.threshold`. */
    metric?: {
        /** PromQL. Each series of its result is compared by itself. */
        expression: string;
        above?: number;
        below?: number;
        /** How long it stays there before receivers are called. */
        minutes: number;
    };
    /** For `service.errors`: the share of received calls that failed is at least this, of at least this many calls. */
    errors?: {
        percent: number;
        minutes: number;
        atLeast: number;
    };
    /** For `service.latency`: the 95th percentile of received calls is at least this, of at least this many calls. */
    latency?: {
        p95Ms: number;
        minutes: number;
        atLeast: number;
    };
    /** For `surface.silent`: it was sent nothing in this time. */
    silent?: {
        minutes: number;
    };
    /** Least time between two messages to a receiver. Events meanwhile wait for the next one. */
    everyMinutes?: number;
    /** Hours of the day in which nothing is sent. Events wait for their end. */
    quietHours?: {
        "from": string;
        to: string;
        zone: string;
    };
    /** Whether the end of a condition is sent too, and that a finding was resolved. True by default. */
    resolved?: boolean;
};
export type Alerts = {
    /** Grows with each change. 0 if nothing was ever changed. */
    revision: number;
    changedAt?: string;
    receivers: AlertReceiver[];
    rules: KeptAlertRule[];
    /** Rules that cannot be measured now, and call no receiver. Absent if all can. */
    failing?: {
        /** The name of the rule. */
        rule: string;
        kind: "finding.created" | "finding.regressed" | "finding.unignored" | "finding.spiking" | "finding.spreading" | "finding.changed" | "finding.commented" | "metric.threshold" | "service.errors" | "service.latency" | "surface.silent" | "pipeline.dead_letters" | "pipeline.quota" | "pipeline.late";
        since: string;
        reason: string;
    }[];
};
export type AlertRule = {
    /** Messages have it. Unique among the rules. */
    name: string;
    kinds: ("finding.created" | "finding.regressed" | "finding.unignored" | "finding.spiking" | "finding.spreading" | "finding.changed" | "finding.commented" | "metric.threshold" | "service.errors" | "service.latency" | "surface.silent" | "pipeline.dead_letters" | "pipeline.quota" | "pipeline.late")[];
    /** Names of receivers. All of them by default. */
    receivers?: string[];
    /** Ids of surfaces. */
    surfaces?: string[];
    /** Values of `service.name`. */
    services?: string[];
    /** Values of `deployment.environment.name`. */
    environments?: string[];
    /** Values of `service.version`, that of the latest occurrence. */
    releases?: string[];
    /** Types of exceptions, or titles of failed spans. */
    types?: string[];
    /** The least number of people whom the finding concerned. */
    minPeople?: number;
    /** For `finding.spiking`: the factor to the busiest five minutes in the same hour of the seven days before, and the least number of occurrences in five minutes. 5 and 20 by default. */
    spiking?: {
        times: number;
        atLeast: number;
    };
    /** For `finding.spreading`: it concerned at least this many people in this time. */
    spreading?: {
        people: number;
        minutes: number;
    };
    /** For `metric.threshold`. */
    metric?: {
        /** PromQL. Each series of its result is compared by itself. */
        expression: string;
        above?: number;
        below?: number;
        /** How long it stays there before receivers are called. */
        minutes: number;
    };
    /** For `service.errors`: the share of received calls that failed is at least this, of at least this many calls. */
    errors?: {
        percent: number;
        minutes: number;
        atLeast: number;
    };
    /** For `service.latency`: the 95th percentile of received calls is at least this, of at least this many calls. */
    latency?: {
        p95Ms: number;
        minutes: number;
        atLeast: number;
    };
    /** For `surface.silent`: it was sent nothing in this time. */
    silent?: {
        minutes: number;
    };
    /** Least time between two messages to a receiver. Events meanwhile wait for the next one. */
    everyMinutes?: number;
    /** Hours of the day in which nothing is sent. Events wait for their end. */
    quietHours?: {
        "from": string;
        to: string;
        zone: string;
    };
    /** Whether the end of a condition is sent too, and that a finding was resolved. True by default. */
    resolved?: boolean;
};
export type ReplaceAlertsRequest = {
    /** The revision of what is replaced. */
    revision: number;
    receivers: {
        /** Unique among the receivers. One with a new name is a new receiver. */
        name: string;
        channel: "webhook" | "slack" | "teams" | "pagerduty" | "email";
        /** For webhook, slack and teams. A known receiver keeps its own by default. */
        url?: string;
        /** For pagerduty: the integration key of an Events API v2 integration. */
        routingKey?: string;
        /** For email. */
        to?: string[];
        /** For webhook: makes a new secret, and signs with both until the next one is made. */
        rotateSecret?: boolean;
        /** Whether messages have links by which anyone who reads them can acknowledge, resolve or ignore a finding. By default true; a known receiver keeps its own. */
        actions?: boolean;
        /** For webhook. With `ed25519` the receiver needs no secret. `hmac` by default, and a known one keeps its own. */
        signature?: "hmac" | "ed25519";
        /** Whether nothing is sent to it. A receiver that answers 410 is disabled. */
        disabled?: boolean;
    }[];
    rules: AlertRule[];
};
export type TestReceiverRequest = {
    /** The name of a receiver. */
    receiver: string;
};
export type TestedReceiver = {
    /** `failed` is repeated, `refused` never is, and `gone` disables the receiver. */
    result: "delivered" | "failed" | "refused" | "gone";
    /** Status of HTTP, or reply code of SMTP. */
    status?: number;
    reason?: string;
    /** The first 1,000 characters of the answer. */
    answer?: string;
    durationMs: number;
};
export type TryAlertRuleRequest = {
    rule: AlertRule;
};
export type TriedCall = {
    at: string;
    kind: "finding.created" | "finding.regressed" | "finding.unignored" | "finding.spiking" | "finding.spreading" | "finding.changed" | "finding.commented" | "metric.threshold" | "service.errors" | "service.latency" | "surface.silent" | "pipeline.dead_letters" | "pipeline.quota" | "pipeline.late";
    title: string;
    findingId?: string;
    /** Whether a condition has ended. */
    resolved: boolean;
    value?: number;
    unit?: string;
};
export type UntriedKind = {
    kind: "finding.created" | "finding.regressed" | "finding.unignored" | "finding.spiking" | "finding.spreading" | "finding.changed" | "finding.commented" | "metric.threshold" | "service.errors" | "service.latency" | "surface.silent" | "pipeline.dead_letters" | "pipeline.quota" | "pipeline.late";
    reason: string;
};
export type AlertTrial = {
    "from": string;
    to: string;
    /** How many events would have called. Webhooks and PagerDuty get a message for each. */
    events: number;
    /** How many messages Slack, Teams and e-mail would have got, by `everyMinutes`, `quietHours` and what one message holds. */
    messages: number;
    /** The latest events, at most 50, the latest first. */
    calls: TriedCall[];
    /** Kinds of the rule of which the past is not known, or not all of it. */
    "unknown": UntriedKind[];
};
export type DeliveryState = "waiting" | "delivered" | "parked" | "ended";
export type DeliveryAttempt = {
    deliveryId: string;
    at: string;
    receiverId: string;
    receiverName: string;
    ruleName: string;
    events: {
        id: string;
        "type": string;
        findingId?: string;
    }[];
    /** Counts from 1. */
    attempt: number;
    /** `failed` is repeated, `refused` never is, and `gone` disables the receiver. */
    result: "delivered" | "failed" | "refused" | "gone";
    /** Status of HTTP, or reply code of SMTP. */
    status?: number;
    reason?: string;
    /** The first 1,000 characters of the answer. */
    answer?: string;
    durationMs: number;
    /** Absent if it is not repeated. */
    nextAttemptAt?: string;
    /** That of the delivery. */
    state: DeliveryState;
};
export type DeliveryAttempts = {
    attempts: DeliveryAttempt[];
};
export type AlertFinding = {
    id: string;
    "type": string;
    message: string;
    /** The `service.name`. Empty if none was sent. */
    service: string;
    environment?: string;
    /** The version of the latest occurrence. */
    release?: string;
    occurrences: number;
    /** In how many sessions it occurred, within about 1 %. */
    sessions: number;
    /** How many identified users it concerned, within about 1 %. Those of at most 100,000 sessions count. */
    people: number;
    firstSeenAt: string;
    lastSeenAt: string;
};
export type FindingEvent = {
    "type": "finding.created" | "finding.regressed" | "finding.unignored" | "finding.spiking" | "finding.spreading" | "finding.changed" | "finding.commented";
    timestamp: string;
    data: {
        /** Id of the event. It is the same each time the event is sent. */
        id: string;
        workspaceId: string;
        /** Absent if it concerns no surface. */
        surface?: {
            id: string;
            name: string;
        };
        /** Whether the condition has ended. False if it has begun or has no end. */
        resolved: boolean;
        finding: AlertFinding;
        /** With `finding.spiking` and `finding.spreading`. */
        measured?: {
            /** The name of the value, such as `share of failed calls`. */
            what: string;
            /** At the end of a condition, the last value that met it. */
            value: number;
            threshold: number;
            /** Such as `%`. Empty if it has none. */
            unit: string;
            /** Length of the time that the value is of. */
            minutes: number;
            /** In PromQL, if the value is that of one. */
            expression?: string;
        };
        /** With `finding.changed` and `finding.commented`. */
        changed?: {
            /** Null for an operator of the installation, and for the link of a message. */
            by: {
                userId: string;
                name?: string;
            } | null;
            /** Present if the link of a message did it: the name of the receiver of the message. */
            via?: {
                receiver: string;
            };
            action: "acknowledged" | "resolved" | "ignored" | "reopened" | "assigned" | "unassigned" | "commented" | "merged" | "split" | "split_off";
            /** To whom it was assigned. */
            assignee?: {
                userId: string;
                name?: string;
            };
            /** The comment. */
            text?: string;
            /** The other finding of a merge or a split. */
            findingId?: string;
        };
        /** The innermost frame of the application. */
        frame?: {
            /** Empty outside of functions. */
            "function": string;
            file: string;
            /** Counts from 1, and is 0 where the stack names none. */
            line: number;
            sourceLine?: string;
        };
        /** The exceptions behind it, the immediate cause first. */
        chain: {
            "type": string;
            message: string;
        }[];
        trace?: string;
        recording?: {
            sessionId: string;
            at: string;
        };
        /** Pages of the console. */
        links: {
            finding: string;
            /** A page that acknowledges, resolves or ignores the finding without signing in, for seven days. Keep it secret. */
            act?: string;
            trace?: string;
            recording?: string;
        };
    };
};
export type MeasuredEvent = {
    "type": "metric.threshold" | "service.errors" | "service.latency" | "surface.silent" | "pipeline.dead_letters" | "pipeline.quota" | "pipeline.late";
    timestamp: string;
    data: {
        /** Id of the event. It is the same each time the event is sent. */
        id: string;
        workspaceId: string;
        /** Absent if it concerns no surface. */
        surface?: {
            id: string;
            name: string;
        };
        /** Whether the condition has ended. False if it has begun or has no end. */
        resolved: boolean;
        /** The `service.name`, if the value is that of one service. */
        service?: string;
        environment?: string;
        /** A value that is compared with a threshold. */
        measured: {
            /** The name of the value, such as `share of failed calls`. */
            what: string;
            /** At the end of a condition, the last value that met it. */
            value: number;
            threshold: number;
            /** Such as `%`. Empty if it has none. */
            unit: string;
            /** Length of the time that the value is of. */
            minutes: number;
            /** In PromQL, if the value is that of one. */
            expression?: string;
        };
        /** The page of the console that shows the value. */
        links: {
            chart: string;
        };
    };
};
export type TestEvent = {
    "type": "test";
    timestamp: string;
    data: {
        /** Id of the event. It is the same each time the event is sent. */
        id: string;
        workspaceId: string;
        /** Absent if it concerns no surface. */
        surface?: {
            id: string;
            name: string;
        };
        /** Whether the condition has ended. False if it has begun or has no end. */
        resolved: boolean;
    };
};
export type AlertEvent = ({
    "type": "finding.created";
} & FindingEvent) | ({
    "type": "finding.regressed";
} & FindingEvent) | ({
    "type": "finding.unignored";
} & FindingEvent) | ({
    "type": "finding.spiking";
} & FindingEvent) | ({
    "type": "finding.spreading";
} & FindingEvent) | ({
    "type": "finding.changed";
} & FindingEvent) | ({
    "type": "finding.commented";
} & FindingEvent) | ({
    "type": "metric.threshold";
} & MeasuredEvent) | ({
    "type": "service.errors";
} & MeasuredEvent) | ({
    "type": "service.latency";
} & MeasuredEvent) | ({
    "type": "surface.silent";
} & MeasuredEvent) | ({
    "type": "pipeline.dead_letters";
} & MeasuredEvent) | ({
    "type": "pipeline.quota";
} & MeasuredEvent) | ({
    "type": "pipeline.late";
} & MeasuredEvent) | ({
    "type": "test";
} & TestEvent);
export type Delivery = {
    deliveryId: string;
    receiverId: string;
    receiverName: string;
    ruleName: string;
    state: DeliveryState;
    /** The bodies that a webhook gets. Empty once the message is not kept any more. */
    events: AlertEvent[];
    /** The latest first. */
    attempts: DeliveryAttempt[];
    /** With `waiting`, if it is not due yet. */
    nextAttemptAt?: string;
};
export type ReplayDeliveryRequest = {};
/**
 * List what is settled of the requests of each surface, newest surface first
 */
export function listWatermarks({ limit, cursor }: {
    limit?: number;
    cursor?: string;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: {
            /** When the watermarks were read, by the clock that accepts requests. */
            readAt: string;
            watermarks: Watermark[];
            nextCursor: NextCursor;
        };
    }>(`/v3/watermarks${QS.query(QS.explode({
        limit,
        cursor
    }))}`, {
        ...opts
    }));
}
/**
 * Read what waits in each queue, rates over time, refusals by status and dead letters by reason
 */
export function readPipeline({ $from, to }: {
    $from?: string;
    to?: string;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: Pipeline;
    }>(`/v3/pipeline${QS.query(QS.explode({
        "from": $from,
        to
    }))}`, {
        ...opts
    }));
}
/**
 * List the releases of the workspace, last registered first
 */
export function listReleases({ limit, cursor, surface, version }: {
    limit?: number;
    cursor?: string;
    surface?: string;
    version?: string;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: ReleasesPage;
    }>(`/v3/releases${QS.query(QS.explode({
        limit,
        cursor,
        surface,
        version
    }))}`, {
        ...opts
    }));
}
/**
 * Read a release: counters, builds, manifest, and the share of resolved stack frames
 */
export function readRelease({ releaseSlug, limit, cursor }: {
    releaseSlug: string;
    limit?: number;
    cursor?: string;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: {
            release: ReleaseDetails;
        };
    }>(`/v3/releases/${encodeURIComponent(releaseSlug)}${QS.query(QS.explode({
        limit,
        cursor
    }))}`, {
        ...opts
    }));
}
/**
 * List the sessions of the workspace, last seen first
 */
export function listSessions({ limit, cursor, user, surface, hasFinding, hasReplay, $from, to }: {
    limit?: number;
    cursor?: string;
    user?: string;
    surface?: string;
    hasFinding?: "true";
    hasReplay?: "true";
    $from?: string;
    to?: string;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: SessionsPage;
    }>(`/v3/sessions${QS.query(QS.explode({
        limit,
        cursor,
        user,
        surface,
        hasFinding,
        hasReplay,
        "from": $from,
        to
    }))}`, {
        ...opts
    }));
}
/**
 * Read a session: identities, devices, traces, findings and replay
 */
export function readSession({ sessionId }: {
    sessionId: string;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: {
            session: Session;
        };
    }>(`/v3/sessions/${encodeURIComponent(sessionId)}`, {
        ...opts
    }));
}
/**
 * Read spans, log records, findings, heartbeats, identities and replay chunks of a session, oldest first
 */
export function readSessionTimeline({ sessionId, limit, cursor, kinds, $from, to }: {
    sessionId: string;
    limit?: number;
    cursor?: string;
    kinds?: string;
    $from?: string;
    to?: string;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: TimelinePage;
    }>(`/v3/sessions/${encodeURIComponent(sessionId)}/timeline${QS.query(QS.explode({
        limit,
        cursor,
        kinds,
        "from": $from,
        to
    }))}`, {
        ...opts
    }));
}
/**
 * List the chunks of a session’s recording, and its gaps
 */
export function readReplay({ sessionId, limit, cursor }: {
    sessionId: string;
    limit?: number;
    cursor?: string;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: ReplayPage;
    }>(`/v3/sessions/${encodeURIComponent(sessionId)}/replay${QS.query(QS.explode({
        limit,
        cursor
    }))}`, {
        ...opts
    }));
}
/**
 * Read the events of a session’s recording, ordered by time
 */
export function readReplayEvents({ sessionId, window, $from, to }: {
    sessionId: string;
    window?: string;
    $from?: string;
    to?: string;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchBlob<{
        status: 200;
        data: Blob;
    }>(`/v3/sessions/${encodeURIComponent(sessionId)}/replay/events${QS.query(QS.explode({
        window,
        "from": $from,
        to
    }))}`, {
        ...opts
    }));
}
/**
 * List the findings of the workspace, last received first
 */
export function listFindings({ limit, cursor, surface, service, $from, to, q, status, occurrences, times }: {
    limit?: number;
    cursor?: string;
    surface?: string;
    service?: string;
    $from?: string;
    to?: string;
    q?: string;
    status?: "open" | "resolved" | "ignored" | "regressed" | "unresolved";
    occurrences?: "true" | "false";
    times?: "received" | "occurred";
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: FindingsPage;
    }>(`/v3/findings${QS.query(QS.explode({
        limit,
        cursor,
        surface,
        service,
        "from": $from,
        to,
        q,
        status,
        occurrences,
        times
    }))}`, {
        ...opts
    }));
}
/**
 * Read a finding: its stack, and when and where it occurred
 */
export function readFinding({ findingId, $from, to, times }: {
    findingId: string;
    $from?: string;
    to?: string;
    times?: "received" | "occurred";
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: {
            finding: FindingDetails;
        };
    }>(`/v3/findings/${encodeURIComponent(findingId)}${QS.query(QS.explode({
        "from": $from,
        to,
        times
    }))}`, {
        ...opts
    }));
}
/**
 * Resolve, ignore, reopen or assign a finding
 */
export function changeFinding({ findingId, changeFindingRequest }: {
    findingId: string;
    changeFindingRequest: ChangeFindingRequest;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: {
            finding: Finding;
        };
    }>(`/v3/findings/${encodeURIComponent(findingId)}`, oazapfts.json({
        ...opts,
        method: "PATCH",
        body: changeFindingRequest
    })));
}
/**
 * Comment on a finding
 */
export function commentFinding({ findingId, idempotencyKey, commentFindingRequest }: {
    findingId: string;
    idempotencyKey?: string;
    commentFindingRequest: CommentFindingRequest;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 201;
        data: {
            entry: FindingActivityEntry;
        };
    }>(`/v3/findings/${encodeURIComponent(findingId)}/comments`, oazapfts.json({
        ...opts,
        method: "POST",
        body: commentFindingRequest,
        headers: oazapfts.mergeHeaders(opts?.headers, {
            "idempotency-key": idempotencyKey
        })
    })));
}
/**
 * List what members have done with a finding, newest first
 */
export function listFindingActivity({ findingId, limit, cursor }: {
    findingId: string;
    limit?: number;
    cursor?: string;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: FindingActivityPage;
    }>(`/v3/findings/${encodeURIComponent(findingId)}/activity${QS.query(QS.explode({
        limit,
        cursor
    }))}`, {
        ...opts
    }));
}
/**
 * Merge findings into one
 */
export function mergeFindings({ findingId, mergeFindingsRequest }: {
    findingId: string;
    mergeFindingsRequest: MergeFindingsRequest;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: {
            finding: Finding;
        };
    }>(`/v3/findings/${encodeURIComponent(findingId)}/merge`, oazapfts.json({
        ...opts,
        method: "POST",
        body: mergeFindingsRequest
    })));
}
/**
 * Make a merged finding one of its own again
 */
export function splitFinding({ findingId, splitFindingRequest }: {
    findingId: string;
    splitFindingRequest: SplitFindingRequest;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: {
            finding: Finding;
        };
    }>(`/v3/findings/${encodeURIComponent(findingId)}/split`, oazapfts.json({
        ...opts,
        method: "POST",
        body: splitFindingRequest
    })));
}
/**
 * List the traces in which a finding occurred, newest first
 */
export function listFindingTraces({ findingId, limit, cursor }: {
    findingId: string;
    limit?: number;
    cursor?: string;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: FindingTracesPage;
    }>(`/v3/findings/${encodeURIComponent(findingId)}/traces${QS.query(QS.explode({
        limit,
        cursor
    }))}`, {
        ...opts
    }));
}
/**
 * List the occurrences of a finding, last received first
 */
export function listFindingOccurrences({ findingId, limit, cursor, $from, to }: {
    findingId: string;
    limit?: number;
    cursor?: string;
    $from?: string;
    to?: string;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: OccurrencesPage;
    }>(`/v3/findings/${encodeURIComponent(findingId)}/occurrences${QS.query(QS.explode({
        limit,
        cursor,
        "from": $from,
        to
    }))}`, {
        ...opts
    }));
}
/**
 * Read whom a finding has hit and where: people, versions, browsers, routes
 */
export function readFindingValues({ findingId, $from, to }: {
    findingId: string;
    $from?: string;
    to?: string;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: FindingValues;
    }>(`/v3/findings/${encodeURIComponent(findingId)}/values${QS.query(QS.explode({
        "from": $from,
        to
    }))}`, {
        ...opts
    }));
}
/**
 * List the traces of the workspace that match, newest first
 */
export function listTraces({ limit, cursor, service, name, status, minDurationMs, attribute, where, session, hasFinding, $from, to }: {
    limit?: number;
    cursor?: string;
    service?: string;
    name?: string;
    status?: "UNSET" | "OK" | "ERROR";
    minDurationMs?: number;
    attribute?: string;
    where?: string;
    session?: string;
    hasFinding?: "true";
    $from?: string;
    to?: string;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: {
            traces: FoundTrace[];
            nextCursor: NextCursor;
        };
    }>(`/v3/traces${QS.query(QS.explode({
        limit,
        cursor,
        service,
        name,
        status,
        minDurationMs,
        attribute,
        where,
        session,
        hasFinding,
        "from": $from,
        to
    }))}`, {
        ...opts
    }));
}
/**
 * List services, names of spans, or keys and values of their attributes, to choose from
 */
export function listSuggestions({ $of, key, contains, service, $from, to, limit }: {
    $of: "service" | "name" | "key" | "value";
    key?: string;
    contains?: string;
    service?: string;
    $from?: string;
    to?: string;
    limit?: number;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: Suggestions;
    }>(`/v3/suggestions${QS.query(QS.explode({
        "of": $of,
        key,
        contains,
        service,
        "from": $from,
        to,
        limit
    }))}`, {
        ...opts
    }));
}
/**
 * Read all spans of a trace, without their details
 */
export function readTrace({ traceId }: {
    traceId: string;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: TraceColumns;
    }>(`/v3/traces/${encodeURIComponent(traceId)}`, {
        ...opts
    }));
}
/**
 * Read everything that was received of some spans
 */
export function readSpans({ traceId, body }: {
    traceId: string;
    body: {
        spanIds: string[];
    };
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: {
            traceId: string;
            /** In the order of the request. */
            spans: SpanDetails[];
            /** Spans for which this response had no room: ask for them again. */
            rest: string[];
            /** Spans of more than 4 MiB, which no response has room for. */
            tooLarge: string[];
            /** Spans that are not retained in the trace. */
            absent: string[];
        };
    }>(`/v3/traces/${encodeURIComponent(traceId)}/spans`, oazapfts.json({
        ...opts,
        method: "POST",
        body
    })));
}
/**
 * List services with their rate of spans, errors and durations
 */
export function listServices({ limit, cursor, surface, environment, $from, to }: {
    limit?: number;
    cursor?: string;
    surface?: string;
    environment?: string;
    $from?: string;
    to?: string;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: ServicesPage;
    }>(`/v3/services${QS.query(QS.explode({
        limit,
        cursor,
        surface,
        environment,
        "from": $from,
        to
    }))}`, {
        ...opts
    }));
}
/**
 * Read which service calls which, how often, and how long it takes
 */
export function readServiceMap({ surface, environment, $from, to, service }: {
    surface?: string;
    environment?: string;
    $from?: string;
    to?: string;
    service?: string;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: ServiceMap;
    }>(`/v3/service-map${QS.query(QS.explode({
        surface,
        environment,
        "from": $from,
        to,
        service
    }))}`, {
        ...opts
    }));
}
/**
 * List the versions of services, with their sessions and people without crashes, and their findings
 */
export function listVersions({ surface, environment, $from, to, service }: {
    surface?: string;
    environment?: string;
    $from?: string;
    to?: string;
    service?: string;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: Versions;
    }>(`/v3/versions${QS.query(QS.explode({
        surface,
        environment,
        "from": $from,
        to,
        service
    }))}`, {
        ...opts
    }));
}
/**
 * Read the operations and versions of a service, with their rates
 */
export function readService({ name, surface, environment, $from, to }: {
    name: string;
    surface?: string;
    environment?: string;
    $from?: string;
    to?: string;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: ServiceDetails;
    }>(`/v3/services/${encodeURIComponent(name)}${QS.query(QS.explode({
        surface,
        environment,
        "from": $from,
        to
    }))}`, {
        ...opts
    }));
}
/**
 * List the log records of the workspace, newest first
 */
export function listLogs({ trace, span, session, service, severity, q, attribute, where, $from, to, receivedFrom, limit, cursor }: {
    trace?: string;
    span?: string;
    session?: string;
    service?: string;
    severity?: "TRACE" | "DEBUG" | "INFO" | "WARN" | "ERROR" | "FATAL";
    q?: string;
    attribute?: string;
    where?: string;
    $from?: string;
    to?: string;
    receivedFrom?: string;
    limit?: number;
    cursor?: string;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: LogsPage;
    }>(`/v3/logs${QS.query(QS.explode({
        trace,
        span,
        session,
        service,
        severity,
        q,
        attribute,
        where,
        "from": $from,
        to,
        receivedFrom,
        limit,
        cursor
    }))}`, {
        ...opts
    }));
}
/**
 * Count the log records of the workspace over time, by severity
 */
export function readLogHistogram({ trace, span, session, service, severity, q, attribute, where, $from, to, receivedFrom, step }: {
    trace?: string;
    span?: string;
    session?: string;
    service?: string;
    severity?: "TRACE" | "DEBUG" | "INFO" | "WARN" | "ERROR" | "FATAL";
    q?: string;
    attribute?: string;
    where?: string;
    $from?: string;
    to?: string;
    receivedFrom?: string;
    step?: number;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: LogHistogram;
    }>(`/v3/logs/histogram${QS.query(QS.explode({
        trace,
        span,
        session,
        service,
        severity,
        q,
        attribute,
        where,
        "from": $from,
        to,
        receivedFrom,
        step
    }))}`, {
        ...opts
    }));
}
/**
 * List metrics by name
 */
export function listMetrics({ limit, cursor, surface, service, $from, to, prefix }: {
    limit?: number;
    cursor?: string;
    surface?: string;
    service?: string;
    $from?: string;
    to?: string;
    prefix?: string;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: MetricsPage;
    }>(`/v3/metrics${QS.query(QS.explode({
        limit,
        cursor,
        surface,
        service,
        "from": $from,
        to,
        prefix
    }))}`, {
        ...opts
    }));
}
/**
 * Read series of a metric, aggregated by step and label
 */
export function readMetricSeries({ name, surface, service, $from, to, $type, unit, filter, groupBy, step, aggregation, quantile }: {
    name: string;
    surface?: string;
    service?: string;
    $from?: string;
    to?: string;
    $type?: "gauge" | "sum" | "histogram" | "exponential_histogram" | "summary";
    unit?: string;
    filter?: string;
    groupBy?: string;
    step?: number;
    aggregation?: "average" | "last" | "max" | "min" | "quantile" | "rate" | "sum";
    quantile?: number;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: MetricSeries;
    }>(`/v3/metrics/${encodeURIComponent(name)}/series${QS.query(QS.explode({
        surface,
        service,
        "from": $from,
        to,
        "type": $type,
        unit,
        filter,
        groupBy,
        step,
        aggregation,
        quantile
    }))}`, {
        ...opts
    }));
}
/**
 * List the dead letters of the workspace, the last request first
 */
export function listDeadLetters({ limit, cursor, state, queue, surface, reason, $from, to }: {
    limit?: number;
    cursor?: string;
    state?: "dead" | "replayed";
    queue?: "traces" | "logs" | "metrics" | "sessions" | "replay" | "replay-chunks" | "source-maps" | "completions" | "build-reports" | "exceptions" | "span-stats" | "symbolication" | "receipts" | "dead-letters" | "dead-letter-index";
    surface?: string;
    reason?: string;
    $from?: string;
    to?: string;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: {
            deadLetters: DeadLetter[];
            nextCursor: NextCursor;
        };
    }>(`/v3/dead-letters${QS.query(QS.explode({
        limit,
        cursor,
        state,
        queue,
        surface,
        reason,
        "from": $from,
        to
    }))}`, {
        ...opts
    }));
}
/**
 * Read a dead letter: its reason, what is stored of its request, and every attempt
 */
export function readDeadLetter({ letterId }: {
    letterId: string;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: {
            deadLetter: DeadLetterDetails;
        };
    }>(`/v3/dead-letters/${encodeURIComponent(letterId)}`, {
        ...opts
    }));
}
/**
 * Put requests that could not be stored back into their queues, each exactly once
 */
export function replayDeadLetters({ body }: {
    body: {
        ids?: string[];
        /** The `nextCursor` of the previous page; absent for the first page. */
        cursor?: string;
        /** The maximum number of letters of one call. */
        limit?: number;
        filter?: {
            /** Only letters in this state. `dead` includes those that are being replayed. */
            state?: "dead" | "replayed";
            /** Only letters of this queue. */
            queue?: "traces" | "logs" | "metrics" | "sessions" | "replay" | "replay-chunks" | "source-maps" | "completions" | "build-reports" | "exceptions" | "span-stats" | "symbolication" | "receipts" | "dead-letters" | "dead-letter-index";
            /** Only letters of the surface with this id. */
            surface?: string;
            /** Only letters with this reason. */
            reason?: string;
            /** Only requests that arrived at or after this time. */
            "from"?: string;
            /** Only requests that arrived before this time. */
            to?: string;
        };
    };
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: {
            /** Letters that are back in their queues. */
            replayed: number;
            /** Letters that this call has not changed. */
            skipped: {
                id: string;
                reason: "replaying" | "replayed" | "purged" | "not_found" | "bytes_missing" | "not_replayable";
            }[];
            nextCursor: NextCursor;
        };
    }>("/v3/dead-letters/replay", oazapfts.json({
        ...opts,
        method: "POST",
        body
    })));
}
/**
 * Delete requests that could not be stored, with their bytes
 */
export function purgeDeadLetters({ body }: {
    body: {
        ids?: string[];
        /** The `nextCursor` of the previous page; absent for the first page. */
        cursor?: string;
        /** The maximum number of letters of one call. */
        limit?: number;
        filter?: {
            /** Only letters in this state. `dead` includes those that are being replayed. */
            state?: "dead" | "replayed";
            /** Only letters of this queue. */
            queue?: "traces" | "logs" | "metrics" | "sessions" | "replay" | "replay-chunks" | "source-maps" | "completions" | "build-reports" | "exceptions" | "span-stats" | "symbolication" | "receipts" | "dead-letters" | "dead-letter-index";
            /** Only letters of the surface with this id. */
            surface?: string;
            /** Only letters with this reason. */
            reason?: string;
            /** Only requests that arrived at or after this time. */
            "from"?: string;
            /** Only requests that arrived before this time. */
            to?: string;
        };
    };
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: {
            /** Letters that are gone. */
            purged: number;
            /** Letters that this call has not changed. */
            skipped: {
                id: string;
                reason: "replaying" | "replayed" | "purged" | "not_found" | "bytes_missing" | "not_replayable";
            }[];
            nextCursor: NextCursor;
        };
    }>("/v3/dead-letters/purge", oazapfts.json({
        ...opts,
        method: "POST",
        body
    })));
}
/**
 * List the surfaces of the workspace, newest first
 */
export function listSurfaces({ limit, cursor }: {
    limit?: number;
    cursor?: string;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: SurfacesPage;
    }>(`/v3/surfaces${QS.query(QS.explode({
        limit,
        cursor
    }))}`, {
        ...opts
    }));
}
/**
 * Create a surface
 */
export function createSurface({ idempotencyKey, createSurfaceRequest }: {
    idempotencyKey?: string;
    createSurfaceRequest: CreateSurfaceRequest;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 201;
        data: {
            surface: Surface;
        };
    }>("/v3/surfaces", oazapfts.json({
        ...opts,
        method: "POST",
        body: createSurfaceRequest,
        headers: oazapfts.mergeHeaders(opts?.headers, {
            "idempotency-key": idempotencyKey
        })
    })));
}
/**
 * Delete a surface and revoke its keys
 */
export function deleteSurface({ surfaceId }: {
    surfaceId: string;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: Done;
    }>(`/v3/surfaces/${encodeURIComponent(surfaceId)}`, {
        ...opts,
        method: "DELETE"
    }));
}
/**
 * List the keys of a surface, newest first
 */
export function listSurfaceKeys({ surfaceId, limit, cursor }: {
    surfaceId: string;
    limit?: number;
    cursor?: string;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: SurfaceKeysPage;
    }>(`/v3/surfaces/${encodeURIComponent(surfaceId)}/keys${QS.query(QS.explode({
        limit,
        cursor
    }))}`, {
        ...opts
    }));
}
/**
 * Create a public or secret key of a surface
 */
export function createSurfaceKey({ surfaceId, idempotencyKey, createSurfaceKeyRequest }: {
    surfaceId: string;
    idempotencyKey?: string;
    createSurfaceKeyRequest: CreateSurfaceKeyRequest;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 201;
        data: {
            key: NewSurfaceKey;
        };
    }>(`/v3/surfaces/${encodeURIComponent(surfaceId)}/keys`, oazapfts.json({
        ...opts,
        method: "POST",
        body: createSurfaceKeyRequest,
        headers: oazapfts.mergeHeaders(opts?.headers, {
            "idempotency-key": idempotencyKey
        })
    })));
}
/**
 * Change the quotas and the allowed origins of a key of a surface
 */
export function updateSurfaceKey({ surfaceId, keyId, updateSurfaceKeyRequest }: {
    surfaceId: string;
    keyId: string;
    updateSurfaceKeyRequest: UpdateSurfaceKeyRequest;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: {
            key: SurfaceKey;
        };
    }>(`/v3/surfaces/${encodeURIComponent(surfaceId)}/keys/${encodeURIComponent(keyId)}`, oazapfts.json({
        ...opts,
        method: "PATCH",
        body: updateSurfaceKeyRequest
    })));
}
/**
 * Revoke a key of a surface
 */
export function revokeSurfaceKey({ surfaceId, keyId }: {
    surfaceId: string;
    keyId: string;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: Done;
    }>(`/v3/surfaces/${encodeURIComponent(surfaceId)}/keys/${encodeURIComponent(keyId)}`, {
        ...opts,
        method: "DELETE"
    }));
}
/**
 * List the workspace API keys, newest first, without their secrets
 */
export function listWorkspaceKeys({ workspaceSlug, limit, cursor }: {
    workspaceSlug: string;
    limit?: number;
    cursor?: string;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: WorkspaceKeysPage;
    }>(`/v3/workspaces/${encodeURIComponent(workspaceSlug)}/api-keys${QS.query(QS.explode({
        limit,
        cursor
    }))}`, {
        ...opts
    }));
}
/**
 * Create a workspace API key
 */
export function createWorkspaceKey({ workspaceSlug, idempotencyKey, createWorkspaceKeyRequest }: {
    workspaceSlug: string;
    idempotencyKey?: string;
    createWorkspaceKeyRequest: CreateWorkspaceKeyRequest;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 201;
        data: {
            apiKey: NewWorkspaceKey;
        };
    }>(`/v3/workspaces/${encodeURIComponent(workspaceSlug)}/api-keys`, oazapfts.json({
        ...opts,
        method: "POST",
        body: createWorkspaceKeyRequest,
        headers: oazapfts.mergeHeaders(opts?.headers, {
            "idempotency-key": idempotencyKey
        })
    })));
}
/**
 * Revoke a workspace API key
 */
export function revokeWorkspaceKey({ workspaceSlug, apiKeyId }: {
    workspaceSlug: string;
    apiKeyId: string;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: Done;
    }>(`/v3/workspaces/${encodeURIComponent(workspaceSlug)}/api-keys/${encodeURIComponent(apiKeyId)}`, {
        ...opts,
        method: "DELETE"
    }));
}
/**
 * List the members of the workspace with their permissions
 */
export function listMembers({ limit, cursor }: {
    limit?: number;
    cursor?: string;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: MembersPage;
    }>(`/v3/members${QS.query(QS.explode({
        limit,
        cursor
    }))}`, {
        ...opts
    }));
}
/**
 * Invite a user by identity
 */
export function addMember({ idempotencyKey, addMemberRequest }: {
    idempotencyKey?: string;
    addMemberRequest: AddMemberRequest;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 201;
        data: {
            member: Member;
        };
    }>("/v3/members", oazapfts.json({
        ...opts,
        method: "POST",
        body: addMemberRequest,
        headers: oazapfts.mergeHeaders(opts?.headers, {
            "idempotency-key": idempotencyKey
        })
    })));
}
/**
 * Replace the permissions of a member
 */
export function changeMember({ userId, changeMemberRequest }: {
    userId: string;
    changeMemberRequest: ChangeMemberRequest;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: {
            member: Member;
        };
    }>(`/v3/members/${encodeURIComponent(userId)}`, oazapfts.json({
        ...opts,
        method: "PATCH",
        body: changeMemberRequest
    })));
}
/**
 * Remove a member
 */
export function removeMember({ userId, keys }: {
    userId: string;
    keys?: "pass" | "revoke";
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: MemberRemoved;
    }>(`/v3/members/${encodeURIComponent(userId)}${QS.query(QS.explode({
        keys
    }))}`, {
        ...opts,
        method: "DELETE"
    }));
}
/**
 * List who has created, changed, revoked, deleted, purged and erased what, newest first
 */
export function listChanges({ limit, cursor }: {
    limit?: number;
    cursor?: string;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: ChangesPage;
    }>(`/v3/changes${QS.query(QS.explode({
        limit,
        cursor
    }))}`, {
        ...opts
    }));
}
/**
 * List requests, bytes and records by day, surface and kind, the latest day first
 */
export function listUsage({ limit, cursor, $from, to }: {
    limit?: number;
    cursor?: string;
    $from?: string;
    to?: string;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: UsagePage;
    }>(`/v3/usage${QS.query(QS.explode({
        limit,
        cursor,
        "from": $from,
        to
    }))}`, {
        ...opts
    }));
}
/**
 * Read how long each kind of data of the workspace is kept
 */
export function readRetention(opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: Retention;
    }>("/v3/retention", {
        ...opts
    }));
}
/**
 * Read the receivers of alerts, and the rules that call them
 */
export function readAlerts(opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: Alerts;
    }>("/v3/alerts", {
        ...opts
    }));
}
/**
 * Replace the receivers of alerts, and the rules that call them
 */
export function replaceAlerts({ replaceAlertsRequest }: {
    replaceAlertsRequest: ReplaceAlertsRequest;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: Alerts;
    }>("/v3/alerts", oazapfts.json({
        ...opts,
        method: "PUT",
        body: replaceAlertsRequest
    })));
}
/**
 * Send a test to a receiver of alerts
 */
export function testReceiver({ testReceiverRequest }: {
    testReceiverRequest: TestReceiverRequest;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: TestedReceiver;
    }>("/v3/alerts/test", oazapfts.json({
        ...opts,
        method: "POST",
        body: testReceiverRequest
    })));
}
/**
 * Try a rule of alerts on the last seven days
 */
export function tryAlertRule({ tryAlertRuleRequest }: {
    tryAlertRuleRequest: TryAlertRuleRequest;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: AlertTrial;
    }>("/v3/alerts/try", oazapfts.json({
        ...opts,
        method: "POST",
        body: tryAlertRuleRequest
    })));
}
/**
 * List the last attempts to send alerts
 */
export function listDeliveries({ findingId, receiver, limit }: {
    findingId?: string;
    receiver?: string;
    limit?: number;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: DeliveryAttempts;
    }>(`/v3/alerts/deliveries${QS.query(QS.explode({
        findingId,
        receiver,
        limit
    }))}`, {
        ...opts
    }));
}
/**
 * Read the message of a delivery, and the attempts to send it
 */
export function readDelivery({ deliveryId }: {
    deliveryId: string;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: Delivery;
    }>(`/v3/alerts/deliveries/${encodeURIComponent(deliveryId)}`, {
        ...opts
    }));
}
/**
 * Send a delivery again that was parked or has ended, or at once if it waits
 */
export function replayDelivery({ deliveryId, replayDeliveryRequest }: {
    deliveryId: string;
    replayDeliveryRequest: ReplayDeliveryRequest;
}, opts?: Oazapfts.RequestOpts) {
    return oazapfts.ok(oazapfts.fetchJson<{
        status: 200;
        data: Delivery;
    }>(`/v3/alerts/deliveries/${encodeURIComponent(deliveryId)}/replay`, oazapfts.json({
        ...opts,
        method: "POST",
        body: replayDeliveryRequest
    })));
}

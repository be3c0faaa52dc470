/**
 * Version of what the decoders make of a payload. A change that refuses or accepts other requests, or makes other rows of
 * the same request, raises it. Records of named batches contain it, so that a log line names both versions where two
 * workers have formed a batch differently.
 */
export const DECODER_VERSION = 1

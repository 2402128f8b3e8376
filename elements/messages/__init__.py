"""DeepStream's message payloads as plain data: who sends (config), what is sent (payloads), strict JSON. No GStreamer."""

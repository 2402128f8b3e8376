"""DeepStream's message payloads as plain data: who sends, what is sent, as strict JSON. No GStreamer."""

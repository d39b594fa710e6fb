// What the sandbox runs: decode reads one image, then the host asks for the results by the functions below.
// An instance decodes once; nothing is freed.
#include <jxl/decode.h>
#include <stdint.h>
#include <stdlib.h>

#define EXPORT(name) __attribute__((export_name(name)))

enum { ok, failed, too_large };

// stopped is the host's: whether the time is up.
__attribute__((import_module("host"), import_name("stopped"))) int stopped(void);

static JxlBasicInfo info;
static JxlPixelFormat format = {0, JXL_TYPE_UINT8, JXL_NATIVE_ENDIAN, 0};
static uint8_t *pixels, *profile;
static size_t profile_size;

EXPORT("buffer") void *buffer(size_t size) { return malloc(size); }
EXPORT("width") uint32_t get_width(void) { return info.xsize; }
EXPORT("height") uint32_t get_height(void) { return info.ysize; }
EXPORT("channels") uint32_t get_channels(void) { return format.num_channels; }
EXPORT("pixels") uint8_t *get_pixels(void) { return pixels; }
EXPORT("profile") uint8_t *get_profile(void) { return profile; }
EXPORT("profile_size") size_t get_profile_size(void) { return profile_size; }

// run does the parts of each step (256 x 256 pixels and the like) one after the other, and asks before each: checks that
// the runtime would put into every loop make all of it three times as slow.
static JxlParallelRetCode run(void *unused, void *step, JxlParallelRunInit init, JxlParallelRunFunction part, uint32_t from, uint32_t to) {
	JxlParallelRetCode code = init(step, 1);
	for (uint32_t i = from; i < to && !code; i++) {
		if (stopped()) return JXL_PARALLEL_RET_RUNNER_ERROR;
		part(step, i, 0);
	}
	return code;
}

// decode leaves the first frame, upright, with 8 bits for each channel: grey alone, or red, green, blue and alpha.
EXPORT("decode") int decode(const uint8_t *src, size_t size, uint64_t max_pixels) {
	JxlDecoder *d = JxlDecoderCreate(NULL);
	if (!d || JxlDecoderSubscribeEvents(d, JXL_DEC_BASIC_INFO | JXL_DEC_COLOR_ENCODING | JXL_DEC_FULL_IMAGE)) return failed;
	if (JxlDecoderSetParallelRunner(d, run, NULL) || JxlDecoderSetUnpremultiplyAlpha(d, JXL_TRUE) || JxlDecoderSetInput(d, src, size)) return failed;
	JxlDecoderCloseInput(d);
	for (;;) {
		switch (JxlDecoderProcessInput(d)) {
		case JXL_DEC_BASIC_INFO:
			if (JxlDecoderGetBasicInfo(d, &info)) return failed;
			if ((uint64_t)info.xsize * info.ysize > max_pixels) return too_large;
			format.num_channels = info.num_color_channels == 1 && !info.alpha_bits ? 1 : 4;
			break;
		case JXL_DEC_COLOR_ENCODING:
			if (JxlDecoderGetICCProfileSize(d, JXL_COLOR_PROFILE_TARGET_DATA, &profile_size)) {
				profile_size = 0; // they are taken for sRGB
				break;
			}
			profile = malloc(profile_size);
			if (!profile || JxlDecoderGetColorAsICCProfile(d, JXL_COLOR_PROFILE_TARGET_DATA, profile, profile_size)) return failed;
			break;
		case JXL_DEC_NEED_IMAGE_OUT_BUFFER: {
			size_t n;
			if (JxlDecoderImageOutBufferSize(d, &format, &n)) return failed;
			pixels = malloc(n);
			if (!pixels || JxlDecoderSetImageOutBuffer(d, &format, pixels, n)) return failed;
			break;
		}
		case JXL_DEC_FULL_IMAGE:
			return ok;
		default: // an error, or the end without an image
			return failed;
		}
	}
}

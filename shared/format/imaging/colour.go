package imaging

import "github.com/davidbyttow/govips/v2/vips"

func isGrey(img *vips.ImageRef) bool {
	in := img.Interpretation()
	return in == vips.InterpretationBW || in == vips.InterpretationGrey16
}

// applyProfile converts img from its embedded ICC profile to sRGB. An unreadable profile, or one for other channels
// than the image has (grey profiles on colour pages are common), is ignored, as browsers do.
func applyProfile(img *vips.ImageRef) error {
	if profileFits(img) && img.TransformICCProfileWithFallback("srgb", "srgb") == nil {
		return nil
	}
	return img.RemoveICCProfile()
}

// profileFits compares the colour space field of the profile's header (ICC.1
// 7.2.6) with the image's channels.
func profileFits(img *vips.ImageRef) bool {
	profile := img.GetICCProfile()
	if len(profile) < 128 {
		return false
	}
	switch string(profile[16:20]) {
	case "GRAY":
		return isGrey(img)
	case "RGB ":
		in := img.Interpretation()
		return in == vips.InterpretationSRGB || in == vips.InterpretationRGB16 || in == vips.InterpretationRGB
	case "CMYK":
		return img.Interpretation() == vips.InterpretationCMYK
	}
	return false
}

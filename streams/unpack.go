package streams

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// maxUnpacked limits the size of one unpacked sub-batch: a megabyte of compressed zeros is a
// gigabyte.
const maxUnpacked = 64 << 20

// unpack returns the records of a sub-batch. It does not rely on plain, the size that the publisher
// states.
func unpack(compression byte, packed []byte, plain uint32, limit int64) (unpacked []byte, err error) {
	defer func() {
		// A library may fail on any bytes, and any client may publish them.
		if p := recover(); p != nil {
			err = fmt.Errorf("does not unpack: %v", p)
		}
	}()
	if int64(plain) > limit {
		return nil, fmt.Errorf("is %d bytes unpacked, at most %d are read", plain, limit)
	}
	if compression == 0 {
		return packed, nil
	}
	in, err := unpacker(compression, packed)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	var out bytes.Buffer
	switch _, err := io.Copy(&out, io.LimitReader(in, limit+1)); {
	case err != nil:
		return nil, err
	case int64(out.Len()) > limit:
		return nil, fmt.Errorf("is over %d bytes unpacked", limit)
	}
	return out.Bytes(), nil
}

func unpacker(compression byte, packed []byte) (io.ReadCloser, error) {
	in := bytes.NewReader(packed)
	switch compression {
	case 1:
		return gzip.NewReader(in)
	case 2:
		return io.NopCloser(snappy.NewReader(in)), nil
	case 3:
		return io.NopCloser(lz4.NewReader(in)), nil
	case 4:
		d, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(2*maxUnpacked))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	default:
		return nil, errors.New("its compression is unknown")
	}
}

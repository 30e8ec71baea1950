// SPDX-License-Identifier: Apache-2.0
// Writes the descriptors of all linked protobuf packages, bare of what JSON does not need, as one FileDescriptorSet in
// a zlib stream.
package main

import (
	"bytes"
	"compress/zlib"
	"log"
	"os"
	"sort"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

// The number of the option udpa.annotations.sensitive.
const sensitive = 76569463

func main() {
	set := &descriptorpb.FileDescriptorSet{}
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		bare := protodesc.ToFileDescriptorProto(file)
		stripFile(bare)
		set.File = append(set.File, bare)
		return true
	})
	sort.Slice(set.File, func(a, b int) bool { return set.File[a].GetName() < set.File[b].GetName() })
	write(os.Args[1], set)
}

func stripFile(file *descriptorpb.FileDescriptorProto) {
	file.SourceCodeInfo, file.Options, file.Service = nil, nil, nil
	for _, message := range file.MessageType {
		stripMessage(message)
	}
	for _, enum := range file.EnumType {
		stripEnum(enum)
	}
	for _, extension := range file.Extension {
		stripField(extension)
	}
}

func stripMessage(message *descriptorpb.DescriptorProto) {
	if !message.GetOptions().GetMapEntry() {
		message.Options = nil
	}
	message.ReservedName, message.ReservedRange = nil, nil
	for _, field := range message.Field {
		stripField(field)
	}
	for _, oneof := range message.OneofDecl {
		oneof.Options = nil
	}
	for _, enum := range message.EnumType {
		stripEnum(enum)
	}
	for _, nested := range message.NestedType {
		stripMessage(nested)
	}
	for _, extension := range message.Extension {
		stripField(extension)
	}
}

// What remains: whether it is packed, and whether it is a secret. The JSON name is what it would be anyway.
func stripField(field *descriptorpb.FieldDescriptorProto) {
	field.JsonName = nil
	old := field.Options
	if old == nil {
		return
	}
	field.Options = nil
	kept := &descriptorpb.FieldOptions{Packed: old.Packed}
	encoded, err := proto.Marshal(old)
	check(err)
	for len(encoded) > 0 {
		number, kind, length := protowire.ConsumeTag(encoded)
		value := protowire.ConsumeFieldValue(number, kind, encoded[length:])
		if number == sensitive {
			raw := append(kept.ProtoReflect().GetUnknown(), encoded[:length+value]...)
			kept.ProtoReflect().SetUnknown(raw)
		}
		encoded = encoded[length+value:]
	}
	if proto.Size(kept) > 0 {
		field.Options = kept
	}
}

func stripEnum(enum *descriptorpb.EnumDescriptorProto) {
	if !enum.GetOptions().GetAllowAlias() {
		enum.Options = nil
	}
	enum.ReservedName, enum.ReservedRange = nil, nil
	for _, value := range enum.Value {
		value.Options = nil
	}
}

func write(path string, set *descriptorpb.FileDescriptorSet) {
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(set)
	check(err)
	var packed bytes.Buffer
	writer, err := zlib.NewWriterLevel(&packed, zlib.BestCompression)
	check(err)
	_, err = writer.Write(encoded)
	check(err)
	check(writer.Close())
	check(os.WriteFile(path, packed.Bytes(), 0o644))
	log.Printf("%s: %d files, %d bytes, %d packed", path, len(set.File), len(encoded), packed.Len())
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

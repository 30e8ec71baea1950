// SPDX-License-Identifier: Apache-2.0
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

type issued struct {
	Certificate string `json:"certificate"`
	Key         string `json:"key"`
}

// certificate makes a self-signed certificate for a server or a client, valid for a month, or one that has ended.
func certificate(names []string) error {
	ends := time.Now().Add(30 * 24 * time.Hour)
	if len(names) == 2 && names[1] == "ended" {
		names, ends = names[:1], time.Now().Add(-time.Minute)
	}
	if len(names) != 1 {
		return fmt.Errorf("certificate takes one DNS name or IP address, and perhaps `ended`")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: names[0]},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     ends,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if address := net.ParseIP(names[0]); address != nil {
		template.IPAddresses = []net.IP{address}
	} else {
		template.DNSNames = names
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	say(issued{
		Certificate: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})),
		Key:         string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})),
	})
	return nil
}
